package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAURLIsShownWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://u:secret@db:5432/billing?password=secret": "postgres://u@db:5432/billing",
		"postgres:///billing?host=/run&password=secret":       redacted,
		"host=db user=u password=secret":                      redacted,
		"https://u:secret@pay.example/base#secret":            "https://u@pay.example/base",
		"http://pay.example":                                  "http://pay.example",
		"http://u:sec%ret@pay":                                redacted,
	} {
		require.Equal(t, want, withoutPassword(given))
	}
}
