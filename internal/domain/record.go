package domain

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
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

	decoded *decoded // what it holds, once somebody has looked
}

// decoded is what a record was found to hold.
type decoded struct {
	event       Event
	fingerprint Fingerprint
	invalid     error
}

// decode looks into the record, once.
func (r *Record) decode(d Decoder) *decoded {
	if r.decoded == nil {
		r.decoded = &decoded{}
		if r.decoded.event, r.decoded.invalid = d.Decode(r); r.decoded.invalid == nil {
			r.decoded.fingerprint = r.decoded.event.Fingerprint()
		}
	}
	return r.decoded
}

// Key stands for an event or for an order among the records in flight.
type Key struct {
	event uuid.UUID
	order int64
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
