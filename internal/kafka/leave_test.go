package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statistics string
		want       bool
	}{
		"a steady member is":                  {`{"cgrp":{"state":"up","join_state":"steady"}}`, true},
		"one that has not begun to join is":   {`{"cgrp":{"state":"up","join_state":"init"}}`, true},
		"one that waits for its share is not": {`{"cgrp":{"state":"up","join_state":"wait-sync"}}`, false},
		"one without a coordinator is not":    {`{"cgrp":{"state":"query-coord","join_state":"steady"}}`, false},
		"one that is no member is not":        {`{}`, false},
		"one that tells nonsense is not":      {`{"cgrp":`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, settled(test.statistics))
		})
	}
}
