package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/billing/internal/domain"
)

func TestHeadersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	header := rapid.Custom(func(t *rapid.T) domain.Header {
		h := domain.Header{Key: string(rapid.SliceOf(rapid.Byte()).Draw(t, "key"))}
		if rapid.Bool().Draw(t, "has a value") {
			h.Value = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "value")...)
		}
		return h
	})
	rapid.Check(t, func(t *rapid.T) {
		headers := rapid.SliceOfN(header, 1, 8).Draw(t, "headers")
		encoded, err := domain.EncodeHeaders(headers)
		require.NoError(t, err)
		decoded, err := domain.DecodeHeaders(encoded)
		require.NoError(t, err)
		require.Equal(t, headers, decoded) // Equal tells nil values from empty ones
	})
}

func TestHeadersHaveAStableForm(t *testing.T) {
	t.Parallel()
	encoded, err := domain.EncodeHeaders([]domain.Header{
		{Key: "eventId", Value: []byte("x")},
		{Key: "nil"},
		{Key: "empty", Value: []byte{}},
		{Key: "\xff\x00", Value: []byte{0, 255}},
		{Key: "eventId", Value: []byte("again")},
	})
	require.NoError(t, err)
	require.Equal(t, `[{"key":"ZXZlbnRJZA==","value":"eA=="},{"key":"bmls","value":null},{"key":"ZW1wdHk=","value":""},`+
		`{"key":"/wA=","value":"AP8="},{"key":"ZXZlbnRJZA==","value":"YWdhaW4="}]`, string(encoded))
}

func TestNoHeadersAreNoBytes(t *testing.T) {
	t.Parallel()
	for _, none := range [][]domain.Header{nil, {}} {
		encoded, err := domain.EncodeHeaders(none)
		require.NoError(t, err)
		require.Nil(t, encoded)
	}
	for _, none := range [][]byte{nil, {}} {
		decoded, err := domain.DecodeHeaders(none)
		require.NoError(t, err)
		require.Nil(t, decoded)
	}
}

func TestBrokenHeadersAreAnError(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"{", "{}", `[{"key":1}]`, `[{"key":"*"}]`, `[{"key":"","value":true}]`} {
		_, err := domain.DecodeHeaders([]byte(broken))
		require.ErrorContains(t, err, "decode headers: ", broken)
	}
}
