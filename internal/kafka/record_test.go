package kafka

import (
	"math"
	"testing"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/require"
)

func TestTimestampThatNoCalendarHoldsIsNone(t *testing.T) {
	t.Parallel()
	last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	first := time.Date(1, 1, 1, 0, 0, 0, 1e6, time.UTC)
	for name, c := range map[string]struct {
		millis int64
		kind   confluent.TimestampType
		want   time.Time
	}{
		"ordinary":                   {1_767_225_600_123, confluent.TimestampCreateTime, time.Date(2026, 1, 1, 0, 0, 0, 123e6, time.UTC)},
		"set by the broker":          {1_767_225_600_123, confluent.TimestampLogAppendTime, time.Date(2026, 1, 1, 0, 0, 0, 123e6, time.UTC)},
		"not available":              {-1, confluent.TimestampNotAvailable, time.Time{}},
		"before 1970":                {-2, confluent.TimestampCreateTime, time.UnixMilli(-2).UTC()},
		"the last of year 9999":      {last.UnixMilli(), confluent.TimestampCreateTime, last},
		"the first of year 10000":    {last.UnixMilli() + 1, confluent.TimestampCreateTime, time.Time{}},
		"the first of year 1":        {first.UnixMilli(), confluent.TimestampCreateTime, first},
		"before year 1":              {first.UnixMilli() - 2, confluent.TimestampCreateTime, time.Time{}},
		"beyond PostgreSQL's past":   {-9e15, confluent.TimestampCreateTime, time.Time{}},
		"beyond PostgreSQL's future": {9.4e15, confluent.TimestampCreateTime, time.Time{}},
		"the largest":                {math.MaxInt64, confluent.TimestampCreateTime, time.Time{}},
		"the smallest":               {math.MinInt64, confluent.TimestampCreateTime, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := &confluent.Message{Timestamp: time.UnixMilli(c.millis), TimestampType: c.kind}
			require.Equal(t, c.want, newItem("t", message).record.Timestamp)
		})
	}
}
