package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/app"
	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/store/storetest"
)

func TestAServiceThatDoesNotMigrateWaitsForTheSchema(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testAServiceThatDoesNotMigrateWaitsForTheSchema)
}

func testAServiceThatDoesNotMigrateWaitsForTheSchema(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 1, paymenttest.Faults{})
	empty := storetest.Empty(t)
	s := w.start(map[string]string{"DATABASE_URL": empty, "MIGRATE_ON_START": "false"})
	w.eventually("it says what it waits for", func() bool { return strings.Contains(s.Logs.String(), "billing migrate up") })
	require.Equal(t, http.StatusServiceUnavailable, readiness(t, s))

	require.Zero(t, app.Main(t.Context(), app.Process{
		Args: []string{"migrate", "up"}, Environ: []string{"DATABASE_URL=" + empty}, Out: io.Discard, Err: io.Discard,
	}))
	w.eventually("it is ready", func() bool { return readiness(t, s) == http.StatusOK })
}

func readiness(t *testing.T, s *service) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr+"/readyz", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
