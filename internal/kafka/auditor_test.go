package kafka_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

func auditReader(t *testing.T, b *testBundle) *kafka.AuditReader {
	t.Helper()
	r, err := kafka.NewAuditReader(b.config(), testLogger(t), domain.SystemClock{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// read returns "offset value" of the records in a range.
func read(t *testing.T, r *kafka.AuditReader, partition int32, from, to int64) (values []string, batches int) {
	t.Helper()
	require.NoError(t, r.Read(t.Context(), partition, from, to, func(records []domain.Record) error {
		batches++
		for _, record := range records {
			require.Equal(t, partition, record.Partition)
			values = append(values, string(record.Value))
		}
		return nil
	}))
	return values, batches
}

func TestAnAuditReadsExactlyItsRangeInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 3, nil)
	b.fill(t, 0, 0, 2500)
	b.fill(t, 2, 0, 10)
	r := auditReader(t, b)

	extents, err := r.Extents(t.Context())
	require.NoError(t, err)
	require.Equal(t, []domain.Extent{
		{Partition: 0, Start: 0, End: 2500, Committed: -1},
		{Partition: 1, Start: 0, End: 0, Committed: -1},
		{Partition: 2, Start: 0, End: 10, Committed: -1},
	}, extents)

	values, batches := read(t, r, 0, 0, 2500)
	require.Equal(t, numbered(0, 2500), values)
	require.Equal(t, 3, batches)
	values, _ = read(t, r, 0, 17, 1234) // ends where it was told to
	require.Equal(t, numbered(17, 1234-17), values)
	values, _ = read(t, r, 2, 3, 4)
	require.Equal(t, []string{"3"}, values)
	values, _ = read(t, r, 2, 5, 100) // ends where the partition ends
	require.Equal(t, numbered(5, 5), values)
	values, batches = read(t, r, 1, 0, 0)
	require.Empty(t, values)
	require.Zero(t, batches)
}

func TestAnAuditSeesTheGroupsPositionAndLeavesItAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	b.fill(t, 0, 0, 40)
	book := newLedger(nil)
	consumer := start(t, b.config(), book)
	book.await(t, 40)
	b.awaitCommitted(t, map[int32]int64{0: 40})
	b.fill(t, 0, 40, 5)
	book.await(t, 45)
	b.awaitCommitted(t, map[int32]int64{0: 45})

	r := auditReader(t, b)
	extents, err := r.Extents(t.Context())
	require.NoError(t, err)
	require.Equal(t, []domain.Extent{{Partition: 0, Start: 0, End: 45, Committed: 45}}, extents)
	values, _ := read(t, r, 0, 0, 45)
	require.Len(t, values, 45)
	members, err := b.admin.DescribeGroups(t.Context(), b.group)
	require.NoError(t, err)
	require.Len(t, members[b.group].Members, 1, "the audit is no member")
	require.Equal(t, map[int32]int64{0: 45}, b.committed(t))
	require.NoError(t, consumer.stop(t))
}

func TestAnAuditSeesNoRecordOfAnAbortedOrOpenTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	producer, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(b.group),
		kgo.DefaultProduceTopic(b.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	begin := func(values ...string) {
		require.NoError(t, producer.BeginTransaction())
		for _, value := range values {
			require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr())
		}
	}
	begin("a", "b")
	require.NoError(t, producer.EndTransaction(t.Context(), kgo.TryCommit))
	begin("x", "y")
	require.NoError(t, producer.EndTransaction(t.Context(), kgo.TryAbort))
	r := auditReader(t, b)
	extents, err := r.Extents(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 6, extents[0].End, "behind the control records")
	values, _ := read(t, r, 0, 0, 6)
	require.Equal(t, []string{"a", "b"}, values)

	begin("open")
	extents, err = r.Extents(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 6, extents[0].End, "before the open transaction")
	values, _ = read(t, r, 0, 0, 7)
	require.Equal(t, []string{"a", "b"}, values)
	require.NoError(t, producer.EndTransaction(t.Context(), kgo.TryAbort))
}

func TestAnAuditFindsOffsetsByTime(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 2, nil)
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		b.produce(t, &kgo.Record{Partition: 0, Value: []byte("x"), Timestamp: noon.Add(time.Duration(i) * time.Minute)})
	}
	r := auditReader(t, b)
	found, err := r.OffsetsAt(t.Context(), noon.Add(210*time.Second))
	require.NoError(t, err)
	require.Equal(t, map[int32]int64{0: 4}, found)
	found, err = r.OffsetsAt(t.Context(), noon.Add(time.Hour))
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestAnAuditOfATopicThatIsNotThereSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	cfg := b.config()
	cfg.Topic += ".missing"
	r, err := kafka.NewAuditReader(cfg, testLogger(t), domain.SystemClock{})
	require.NoError(t, err)
	_, err = r.Extents(t.Context())
	require.ErrorIs(t, err, kafka.ErrNoTopic)
	require.NoError(t, r.Close())
}

func TestAnAuditEndsWhenItsTakerFails(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	b.fill(t, 0, 0, 5)
	r := auditReader(t, b)
	full := errors.New("full")
	err := r.Read(t.Context(), 0, 0, 5, func([]domain.Record) error { return full })
	require.ErrorIs(t, err, full)
}
