package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetentionOfATopic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"604800000": 168 * time.Hour, "0": 0, "-1": Forever, "9223372036854775807": Forever,
	} {
		got, err := retentionOf(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	_, err := retentionOf("a week")
	require.EqualError(t, err, `kafka: retention.ms="a week": not a number`)
}
