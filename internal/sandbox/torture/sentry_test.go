package torture

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestTheSentrySeesWhetherAPostBeforeWasAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider http.HandlerFunc
		told     bool
	}{
		"captured":         {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, true},
		"declined":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPaymentRequired) }, true},
		"in progress":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) }, false},
		"failed":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, false},
		"taken over":       {func(w http.ResponseWriter, _ *http.Request) { hijack(t, w) }, false},
		"answered nothing": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSentry(func(context.Context, uuid.UUID) (bool, error) { return true, nil })
			server := httptest.NewServer(s.watch(c.provider))
			defer server.Close()
			key := uuid.New()
			post(t, server.URL, key)
			require.Empty(t, s.all(), "the first one repeats nothing")
			post(t, server.URL, key)
			post(t, server.URL, uuid.New())
			repeats := s.all()
			require.Len(t, repeats, 1)
			require.Equal(t, key, repeats[0].Key)
			require.Equal(t, c.told, repeats[0].Told)
			require.True(t, repeats[0].Owned)
			require.True(t, repeats[0].Before.Before(repeats[0].At))
		})
	}
}

func TestTheSentryAsksTheBookWhileTheAnswerIsAwaited(t *testing.T) {
	t.Parallel()
	var err error
	s := newSentry(func(context.Context, uuid.UUID) (bool, error) { return false, err })
	server := httptest.NewServer(s.watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	key := uuid.New()
	post(t, server.URL, key)
	post(t, server.URL, key)
	err = errors.New("away")
	post(t, server.URL, key)
	repeats := s.all()
	require.Len(t, repeats, 2)
	require.False(t, repeats[0].Owned || repeats[0].Unknown)
	require.True(t, repeats[1].Unknown)
}

// post sends one, whatever is answered.
func post(t *testing.T, url string, key uuid.UUID) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Idempotency-Key", key.String())
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if response, err := client.Do(request); err == nil {
		require.NoError(t, response.Body.Close())
	}
}

func hijack(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		panic(err)
	}
}
