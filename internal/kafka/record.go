package kafka

import (
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// noEpoch is the leader epoch of a record whose broker told none.
const noEpoch = int32(-1)

// itemState is how far a record in a lane has come.
type itemState uint8

const (
	waiting itemState = iota // for a batch
	held                     // passed over: its event or order is in flight
	flying                   // in a batch
	durable                  // behind a record that is not yet
)

// item is a record in a lane.
type item struct {
	record domain.Record
	state  itemState
	keyed  bool   // it holds a valid event, and so has keys
	in     *batch // that it flies in
	event  domain.Key
	order  domain.Key
	// epoch is the leader epoch the record was written in. It is committed with the
	// offset, so that a log that was cut back in between is noticed on resumption.
	epoch int32
	// bytes is what the record holds: key, value and headers.
	bytes int
}

// newItem takes a message over. The client has copied its bytes for us already
// and never touches them again; nil and empty stay what they are.
func newItem(topic string, message *confluent.Message) item {
	taken := item{
		record: domain.Record{
			Coordinates: domain.Coordinates{
				Topic:     topic,
				Partition: message.TopicPartition.Partition,
				Offset:    int64(message.TopicPartition.Offset),
			},
			Timestamp: timestampOf(message),
			Key:       message.Key,
			Value:     message.Value,
		},
		epoch: epochOf(message.TopicPartition),
		bytes: len(message.Key) + len(message.Value),
	}
	if len(message.Headers) > 0 {
		taken.record.Headers = make([]domain.Header, len(message.Headers))
	}
	for i, header := range message.Headers {
		taken.record.Headers[i] = domain.Header{Key: header.Key, Value: header.Value}
		taken.bytes += len(header.Key) + len(header.Value)
	}
	return taken
}

// timestampOf returns the record's timestamp in UTC, zero where it has none or one
// outside the years 1 to 9999. Brokers take any number of milliseconds; databases and
// JSON do not, and no record may be held up by a timestamp that is nobody's money.
func timestampOf(message *confluent.Message) time.Time {
	if message.TimestampType == confluent.TimestampNotAvailable {
		return time.Time{}
	}
	at := message.Timestamp.UTC()
	if year := at.Year(); year < 1 || year > 9999 {
		return time.Time{}
	}
	return at
}

// next is the position behind the record: what is committed once it is durable.
func (i item) next() mark { return mark{offset: i.record.Offset + 1, epoch: i.epoch} }

func epochOf(at confluent.TopicPartition) int32 {
	if at.LeaderEpoch == nil {
		return noEpoch
	}
	return *at.LeaderEpoch
}
