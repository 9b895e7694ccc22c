package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// adminTimeout bounds one question to the broker.
	adminTimeout = 15 * time.Second
	// readIdle is how long a read of the topic may go without a record.
	readIdle = 20 * time.Second
)

// watcher looks at the topic and the group with a client of its own.
type watcher struct {
	brokers []string
	topic   string
	group   string
	client  *kgo.Client
	admin   *kadm.Client

	partitions int // of the topic, once stands has asked
}

func newWatcher(brokers []string, topic, group string) (*watcher, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &watcher{brokers: brokers, topic: topic, group: group, client: client, admin: kadm.NewClient(client)}, nil
}

func (w *watcher) close() { w.client.Close() }

// checkEmpty refuses a topic with records in it, or a group that has been there: a run
// is judged by every record of its topic.
func (w *watcher) checkEmpty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	starts, ends, err := w.bounds(ctx)
	if err != nil {
		return err
	}
	for p, end := range ends {
		if end > starts[p] {
			return fmt.Errorf("topic %s has records already: give another by --topic", w.topic)
		}
	}
	commits, err := w.commits(ctx)
	if err != nil {
		return err
	}
	for p := range ends {
		if _, found := commits.Lookup(w.topic, p); found {
			return fmt.Errorf("group %s has consumed topic %s before: give another by --group or --topic", w.group, w.topic)
		}
	}
	return nil
}

// bounds are the first and the next offset of each partition.
func (w *watcher) bounds(ctx context.Context) (starts, ends map[int32]int64, err error) {
	first, err := w.admin.ListStartOffsets(ctx, w.topic)
	if err == nil {
		err = first.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("first offsets of %s: %w", w.topic, err)
	}
	next, err := w.admin.ListEndOffsets(ctx, w.topic)
	if err == nil {
		err = next.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("last offsets of %s: %w", w.topic, err)
	}
	starts, ends = make(map[int32]int64), make(map[int32]int64)
	first.Each(func(o kadm.ListedOffset) { starts[o.Partition] = o.Offset })
	next.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return starts, ends, nil
}

// lag is the number of offsets that the group has not committed.
func (w *watcher) lag(ctx context.Context) (lag int64, err error) {
	lags, err := w.lags(ctx)
	for _, n := range lags {
		lag += n
	}
	return lag, err
}

// lags are the numbers of offsets that the group has not committed, by partition.
func (w *watcher) lags(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	starts, ends, err := w.bounds(ctx)
	if err != nil {
		return nil, err
	}
	commits, err := w.commits(ctx)
	if err != nil {
		return nil, err
	}
	lags := make(map[int32]int64, len(ends))
	for p, end := range ends {
		at := starts[p]
		if commit, found := commits.Lookup(w.topic, p); found && commit.At > at {
			at = commit.At
		}
		lags[p] = end - at
	}
	return lags, nil
}

// standing is what a group is doing.
type standing struct {
	moving     bool // between two assignments
	members    int
	owned      int // partitions with an owner
	partitions int
}

// settled reports whether so many members, and no others, own every partition.
func (s standing) settled(members int) bool {
	return !s.moving && s.members == members && s.owned == s.partitions
}

// stands asks how the group stands.
func (w *watcher) stands(ctx context.Context) (s standing, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	groups, err := w.admin.DescribeGroups(ctx, w.group)
	if err == nil {
		err = groups.Error()
	}
	if err != nil {
		return s, fmt.Errorf("describe group %s: %w", w.group, err)
	}
	if w.partitions == 0 {
		_, ends, err := w.bounds(ctx)
		if err != nil {
			return s, err
		}
		w.partitions = len(ends)
	}
	described := groups[w.group]
	return standing{
		moving: described.State != "Stable", members: len(described.Members),
		owned: len(described.AssignedPartitions()[w.topic]), partitions: w.partitions,
	}, nil
}

// commits are the group's offsets; a group that is not there has none. A broker that
// has only just begun to keep groups is asked again until ctx ends.
func (w *watcher) commits(ctx context.Context) (kadm.OffsetResponses, error) {
	commits, err := w.admin.FetchOffsets(ctx, w.group)
	for kerr.IsRetriable(err) && sleep(ctx, finishPoll) == nil {
		commits, err = w.admin.FetchOffsets(ctx, w.group)
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil //nolint:nilnil // no offsets
	}
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of group %s: %w", w.group, err)
	}
	return commits, nil
}

// read consumes the whole topic.
func (w *watcher) read(ctx context.Context) (Topic, error) {
	topic := Topic{Events: make(map[uuid.UUID]int64), Meanings: make(map[uuid.UUID]Meaning), Conflicting: make(map[string]uuid.UUID)}
	err := w.each(ctx, topic.take)
	return topic, err
}

// each shows every record that is in the topic at this moment.
func (w *watcher) each(ctx context.Context, visit func(*kgo.Record)) error {
	starts, ends, err := w.bounds(ctx)
	if err != nil {
		return err
	}
	from := make(map[int32]kgo.Offset)
	for p, end := range ends {
		if end > starts[p] {
			from[p] = kgo.NewOffset().At(starts[p])
		}
	}
	if len(from) == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	for len(from) > 0 {
		if err := poll(ctx, client, ends, from, visit); err != nil {
			return fmt.Errorf("read topic %s: %w", w.topic, err)
		}
	}
	return nil
}

// poll takes what one poll brings, and removes the partitions that are read to their end.
func poll(ctx context.Context, client *kgo.Client, ends map[int32]int64, open map[int32]kgo.Offset, visit func(*kgo.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, readIdle)
	defer cancel()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return err
	}
	fetches.EachRecord(func(r *kgo.Record) {
		if r.Offset >= ends[r.Partition] {
			return
		}
		if r.Offset == ends[r.Partition]-1 {
			delete(open, r.Partition)
		}
		if !r.Attrs.IsControl() {
			visit(r)
		}
	})
	return nil
}
