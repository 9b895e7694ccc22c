package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// noon is the timestamp of the first record of these tests, long ago: brokers take none from
// the future. The others follow a minute apart.
var noon = time.Date(2024, 11, 29, 12, 0, 0, 0, time.UTC)

// setupForever is setup of a topic that forgets nothing.
func setupForever(t *testing.T, partitions int32) *testBundle {
	t.Helper()
	return setup(t, brokersUnderTest(t), partitions, map[string]string{"retention.ms": "-1"})
}

func minute(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// minutely writes n records into a partition, one a minute from noon.
func (b *testBundle) minutely(t *testing.T, partition int32, n int) {
	t.Helper()
	for i := range n {
		b.produce(t, &kgo.Record{Partition: partition, Value: []byte("x"), Timestamp: minute(i)})
	}
}

// place sets the offsets of a group that has no members.
func (b *testBundle) place(t *testing.T, group string, offsets map[int32]int64) {
	t.Helper()
	to := kadm.Offsets{}
	for partition, at := range offsets {
		to.AddOffset(b.topic, partition, at, -1)
	}
	require.NoError(t, b.admin.CommitAllOffsets(t.Context(), group, to))
}

func follows(followed ...kafka.Followed) func(context.Context) ([]kafka.Followed, error) {
	return func(context.Context) ([]kafka.Followed, error) { return followed, nil }
}

// unread returns what is unread of before an instant.
func unread(t *testing.T, cfg kafka.Config, at time.Time, followed ...kafka.Followed) []domain.Unread {
	t.Helper()
	u, err := kafka.NewUnreadReader(cfg, testLogger(t), follows(followed...))
	require.NoError(t, err)
	found, err := u.UnreadBefore(t.Context(), at)
	require.NoError(t, err)
	return found
}

func TestUnreadIsWhatLiesBeforeTheInstantAndBehindTheGroup(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 3)
	b.minutely(t, 0, 10)
	b.minutely(t, 2, 6)
	one := func(partition int32, records int64) domain.Unread {
		return domain.Unread{Group: b.group, Topic: b.topic, Partition: partition, Records: records}
	}
	require.Equal(t, []domain.Unread{one(0, 10), one(2, 6)}, unread(t, b.config(), minute(60)), "a group without a position has read nothing")
	require.Empty(t, unread(t, b.config(), noon), "nothing is older than the first record")

	b.place(t, b.group, map[int32]int64{0: 4, 2: 6})
	require.Empty(t, unread(t, b.config(), minute(4)), "the next record is not older than its own timestamp")
	require.Equal(t, []domain.Unread{one(0, 1)}, unread(t, b.config(), minute(4).Add(time.Millisecond)))
	require.Equal(t, []domain.Unread{one(0, 3)}, unread(t, b.config(), minute(7)))
	require.Equal(t, []domain.Unread{one(0, 6)}, unread(t, b.config(), minute(60)))
	b.place(t, b.group, map[int32]int64{0: 10})
	require.Empty(t, unread(t, b.config(), minute(60)))
}

// A record from the future hides what is behind it from a search by time, and not from a
// look at the next record.
func TestARecordFromTheFutureHidesNothingThatIsUnread(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 1)
	b.produce(t, &kgo.Record{Value: []byte("x"), Timestamp: minute(100_000)})
	b.minutely(t, 0, 5)
	b.place(t, b.group, map[int32]int64{0: 1})
	require.Equal(t, []domain.Unread{{Group: b.group, Topic: b.topic, Records: 1}}, unread(t, b.config(), minute(60)))
}

// A topic that was deleted and created again begins at 0, while its group's position stays; a
// consumer that finds it out of range begins at the first record.
func TestAPositionBeyondTheEndHasReadNothing(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 2)
	b.minutely(t, 0, 5)
	b.place(t, b.group, map[int32]int64{0: 100, 1: 100})
	require.Equal(t, []domain.Unread{{Group: b.group, Topic: b.topic, Records: 5}}, unread(t, b.config(), minute(60)))
	b.place(t, b.group, map[int32]int64{0: 5})
	require.Empty(t, unread(t, b.config(), minute(60)), "at the end nothing is unread")
}

// What a partition holds keeps no other waiting: each of them shows one record and is let go.
func TestManyLongPartitionsAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	const partitions = 12
	b := setupForever(t, partitions)
	offsets := map[int32]int64{}
	for p := range int32(partitions) {
		records := make([]*kgo.Record, 2000)
		for i := range records {
			records[i] = &kgo.Record{Partition: p, Value: make([]byte, 400), Timestamp: minute(i)}
		}
		b.produce(t, records...)
		offsets[p] = 100 * int64(p)
	}
	b.place(t, b.group, offsets)
	u, err := kafka.NewUnreadReader(b.config(), testLogger(t), follows())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // in turns it takes twice as long
	defer cancel()
	found, err := u.UnreadBefore(ctx, minute(550))
	require.NoError(t, err)
	require.Len(t, found, 6)
	for p, of := range found {
		require.Equal(t, domain.Unread{Group: b.group, Topic: b.topic, Partition: int32(p), Records: 550 - 100*int64(p)}, of)
	}
}

func TestRecordsThatTheTopicHasForgottenAreNotUnread(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 1)
	b.minutely(t, 0, 10)
	b.place(t, b.group, map[int32]int64{0: 2})
	upTo := func(offset int64) {
		to := kadm.Offsets{}
		to.AddOffset(b.topic, 0, offset, -1)
		_, err := b.admin.DeleteRecords(t.Context(), to)
		require.NoError(t, err)
	}
	upTo(7)
	require.Equal(t, []domain.Unread{{Group: b.group, Topic: b.topic, Records: 3}}, unread(t, b.config(), minute(60)))
	require.Empty(t, unread(t, b.config(), minute(7)))
	upTo(10)
	require.Empty(t, unread(t, b.config(), minute(60)))
}

func TestOtherGroupsCountOnceTheyHaveAPosition(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 2)
	b.minutely(t, 0, 5)
	b.minutely(t, 1, 3)
	b.place(t, b.group, map[int32]int64{0: 5, 1: 3})
	other := kafka.Followed{Group: b.group + ".other", Topic: b.topic}
	ours := kafka.Followed{Group: b.group, Topic: b.topic}
	missing := kafka.Followed{Group: b.group, Topic: b.topic + ".gone"}
	require.Empty(t, unread(t, b.config(), minute(60), other, ours, missing), "without a position nobody waits for it")

	b.place(t, other.Group, map[int32]int64{0: 3})
	want := []domain.Unread{
		{Group: other.Group, Topic: b.topic, Partition: 0, Records: 2},
		{Group: other.Group, Topic: b.topic, Partition: 1, Records: 3},
	}
	require.Equal(t, want, unread(t, b.config(), minute(60), other, ours, missing), "a partition that it has no position in yet is unread whole")
	b.place(t, other.Group, map[int32]int64{0: 5, 1: 3})
	require.Empty(t, unread(t, b.config(), minute(60), ours, other))
}

func TestPositionsThatAreKeptOutsideOfKafkaCount(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 1)
	b.minutely(t, 0, 10)
	b.place(t, b.group, map[int32]int64{0: 6})
	inBook := b.config()
	inBook.Positions = newPositions()
	kept := func(group string, at int64) kafka.Followed {
		return kafka.Followed{Group: group, Topic: b.topic, Kept: map[int32]int64{0: at}}
	}
	records := func(cfg kafka.Config, f kafka.Followed) (n int64) {
		for _, u := range unread(t, cfg, minute(60), f) {
			if u.Group == f.Group {
				n += u.Records
			}
		}
		return n
	}
	require.EqualValues(t, 1, records(inBook, kept(b.group, 9)), "the book is ahead")
	require.EqualValues(t, 8, records(inBook, kept(b.group, 2)), "the book was set back")
	require.EqualValues(t, 4, records(inBook, kafka.Followed{Group: b.group, Topic: b.topic}), "the book has no position yet")
	require.EqualValues(t, 4, records(b.config(), kept(b.group, 9)), "the book is not asked any more")

	other := b.group + ".other"
	require.EqualValues(t, 1, records(b.config(), kept(other, 9)), "it has a position in the book only")
	b.place(t, other, map[int32]int64{0: 3})
	require.EqualValues(t, 7, records(b.config(), kept(other, 9)), "the smaller one of another group")
	require.EqualValues(t, 8, records(b.config(), kept(other, 2)), "the smaller one of another group")
}

func TestControlRecordsAndAbortedOnesAreNotUnread(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(b.group),
		kgo.DefaultProduceTopic(b.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	within := func(end kgo.TransactionEndTry, n int) {
		require.NoError(t, producer.BeginTransaction())
		for i := range n {
			require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x"), Timestamp: minute(i)}).FirstErr())
		}
		require.NoError(t, producer.EndTransaction(t.Context(), end))
	}
	within(kgo.TryCommit, 2)
	within(kgo.TryAbort, 3)
	b.place(t, b.group, map[int32]int64{0: 1})
	require.Len(t, unread(t, b.config(), minute(60)), 1)
	b.place(t, b.group, map[int32]int64{0: 2}) // behind the last record, before its control record
	require.Empty(t, unread(t, b.config(), time.Now().Add(time.Hour)))

	require.NoError(t, producer.BeginTransaction())
	require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x"), Timestamp: noon}).FirstErr())
	require.Empty(t, unread(t, b.config(), time.Now().Add(time.Hour)), "nobody can read it yet")
	require.NoError(t, producer.EndTransaction(t.Context(), kgo.TryAbort))
}

func TestWhatIsUnreadIsNotKnownWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := setupForever(t, 1)
	ask := func(cfg kafka.Config, followed func(context.Context) ([]kafka.Followed, error)) error {
		u, err := kafka.NewUnreadReader(cfg, testLogger(t), followed)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = u.UnreadBefore(ctx, noon)
		return err
	}
	require.NoError(t, ask(b.config(), follows()))
	lost := errors.New("no database")
	require.ErrorIs(t, ask(b.config(), func(context.Context) ([]kafka.Followed, error) { return nil, lost }), lost)
	gone := b.config()
	gone.Topic += ".gone"
	require.ErrorContains(t, ask(gone, follows()), "unread records of "+gone.Topic, "our own topic must be there")
	away := b.config()
	away.Brokers = []string{"127.0.0.1:1"}
	require.Error(t, ask(away, follows()))
}
