package domain

import (
	"fmt"
	"slices"
	"time"
)

// Coordinates say where a record stands in Kafka. They identify a record, never
// an event: a republished event has other coordinates.
type Coordinates struct {
	Topic     string
	Partition int32
	Offset    int64
}

// String returns topic/partition@offset.
func (c Coordinates) String() string {
	return fmt.Sprintf("%s/%d@%d", c.Topic, c.Partition, c.Offset)
}

// Header is one Kafka record header. A nil Value differs from an empty one, and
// both are kept as they came.
type Header struct {
	Key   string
	Value []byte
}

// Record is one Kafka record as it came: bytes that may or may not hold a valid
// event. A nil Value is a tombstone.
type Record struct {
	Coordinates
	Timestamp time.Time
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header returns the value of the last header named key, and whether there is one.
func (r *Record) Header(key string) ([]byte, bool) {
	for _, h := range slices.Backward(r.Headers) {
		if h.Key == key {
			return h.Value, true
		}
	}
	return nil, false
}
