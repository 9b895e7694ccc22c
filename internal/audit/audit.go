package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/billing/internal/domain"
)

// Topic reads the topic without joining the group.
type Topic interface {
	// Extents returns what there is of each partition, in the order of their numbers.
	Extents(ctx context.Context) ([]domain.Extent, error)
	// OffsetsAt returns, by partition, the first offset whose record is at or after
	// an instant; a partition without one is left out.
	OffsetsAt(ctx context.Context, at time.Time) (map[int32]int64, error)
	// Read hands the records of [from, to) over in batches, in their order. Offsets
	// without a record (control records, aborted transactions) are passed over.
	Read(ctx context.Context, partition int32, from, to int64, fn func([]domain.Record) error) error
}

// ErrRange is wrapped by errors about a range that the topic does not have.
var ErrRange = errors.New("no such range")

// Bounds of an audit.
const (
	pageRows    = 5000           // rows of a table that are read at a time
	maxSuspects = 5000           // records that are kept for a second look
	maxReread   = 1000           // records that are read again to confirm an orphan
	lookups     = 16             // questions to the provider at a time
	margin      = 24 * time.Hour // by how much a row may be older than its record's timestamp
)

// Options say what is audited.
type Options struct {
	Group     string
	Retention time.Duration // for how long processed_event remembers
	// Since and Until bound the records by their timestamps, From and To by their
	// offsets (To is not part of the range). Where From or To name partitions, no
	// other is audited. All zero: everything.
	Since, Until time.Time
	From, To     map[int32]int64
	// Position is the group's position in the database, where it is kept there.
	Position map[int32]int64
	// Keep is how many findings are kept in full; all are counted.
	Keep int
	// Recheck is the pause before the second look.
	Recheck time.Duration
	// Progress is told how far the audit is; nil: nobody is. Most is -1 where nobody knows.
	Progress func(step string, done, most int64)
	// Each is told what became of every record; nil: nobody is.
	Each func(Outcome)
}

// Outcome is the terminal record of one offset.
type Outcome struct {
	At    domain.Coordinates
	Event domain.Event // zero for an invalid record
	Kind  Kind
	First domain.Coordinates // of a duplicate: where its event was first seen
}

func (o *Options) partial() bool {
	return !o.Since.IsZero() || !o.Until.IsZero() || len(o.From) > 0 || len(o.To) > 0
}

// Auditor audits one topic. Create it by New, run it once.
type Auditor struct {
	options Options
	topic   Topic
	books   domain.Witness
	finder  domain.Finder // nil: the provider is not asked
	clock   domain.Clock

	judge    judge
	spans    map[int32]*span
	oldest   time.Time // timestamp of the oldest record; zero where one has none
	some     bool      // a record was read
	kinds    map[Kind]int64
	found    findings
	suspects []subject
	orphans  []row                       // likewise
	crowded  map[domain.Coordinates]bool // records that two rows name
	open     []question                  // likewise
	warnings []string
	asked    ProviderReport
	rereads  int
	name     string // of the topic, as the records say
}

// New returns an auditor. Finder may be nil: then the provider is not asked.
func New(o Options, topic Topic, books domain.Witness, finder domain.Finder, clock domain.Clock) *Auditor {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.Each == nil {
		o.Each = func(Outcome) {}
	}
	return &Auditor{
		options: o, topic: topic, books: books, finder: finder, clock: clock,
		spans: map[int32]*span{}, kinds: map[Kind]int64{}, crowded: map[domain.Coordinates]bool{}, found: findings{keep: o.Keep},
		asked: ProviderReport{Asked: finder != nil},
	}
}

// Run audits and reports. An error means that there is no report: a witness did
// not answer, or the range is none (ErrRange).
func (a *Auditor) Run(ctx context.Context, topic string) (Report, error) {
	began := a.clock.Now()
	a.name = topic
	a.judge = judge{now: began, retention: a.options.Retention}
	if err := a.choose(ctx); err != nil {
		return Report{}, fmt.Errorf("range: %w", err)
	}
	if err := a.readTopic(ctx); err != nil {
		return Report{}, fmt.Errorf("read the topic: %w", err)
	}
	if err := a.readTables(ctx); err != nil {
		return Report{}, fmt.Errorf("read the tables: %w", err)
	}
	stats, err := a.books.DedupStats(ctx, a.options.Group, time.Time{})
	if err != nil {
		return Report{}, fmt.Errorf("read the statistics: %w", err)
	}
	a.countersAddUp(&stats.Total)
	return a.report(began), nil
}

// choose turns the options into spans.
func (a *Auditor) choose(ctx context.Context) error {
	extents, err := a.topic.Extents(ctx)
	if err != nil {
		return err
	}
	var since, until map[int32]int64
	if !a.options.Since.IsZero() {
		if since, err = a.topic.OffsetsAt(ctx, a.options.Since); err != nil {
			return err
		}
	}
	if !a.options.Until.IsZero() {
		if until, err = a.topic.OffsetsAt(ctx, a.options.Until); err != nil {
			return err
		}
	}
	for _, e := range extents {
		e.Committed = max(e.Committed, a.position(e.Partition))
		from, to := e.Start, e.End
		if since != nil {
			from = max(from, offsetOr(since, e.Partition, math.MaxInt64))
		}
		if until != nil {
			to = min(to, offsetOr(until, e.Partition, math.MaxInt64))
		}
		if len(a.options.From)+len(a.options.To) > 0 {
			lower, bounded := a.options.From[e.Partition]
			upper, ended := a.options.To[e.Partition]
			if !bounded && !ended {
				continue
			}
			from = max(from, lower)
			if ended {
				to = min(to, upper)
			}
		}
		a.spans[e.Partition] = newSpan(e, min(from, max(to, e.Start)), max(to, e.Start))
		a.warnAbout(e)
	}
	return a.known()
}

func (a *Auditor) position(partition int32) int64 { return offsetOr(a.options.Position, partition, -1) }

func offsetOr(offsets map[int32]int64, partition int32, otherwise int64) int64 {
	if offset, ok := offsets[partition]; ok {
		return offset
	}
	return otherwise
}

func (a *Auditor) warnAbout(e domain.Extent) {
	switch {
	case e.Committed < 0 && e.End > e.Start:
		a.warnings = append(a.warnings, fmt.Sprintf("partition %d: the group %s has committed no offset, so that no record must be explained", e.Partition, a.options.Group))
	case e.Start > 0:
		a.warnings = append(a.warnings, fmt.Sprintf("partition %d begins at offset %d: what was before is not in the topic any more", e.Partition, e.Start))
	}
}

// known refuses partitions that the topic does not have.
func (a *Auditor) known() error {
	for _, offsets := range []map[int32]int64{a.options.From, a.options.To} {
		for partition := range offsets {
			if a.spans[partition] == nil {
				return fmt.Errorf("%w: the topic has no partition %d", ErrRange, partition)
			}
		}
	}
	return nil
}

// partitions returns the spans in the order of their numbers.
func (a *Auditor) partitions() []*span {
	spans := make([]*span, 0, len(a.spans))
	for _, s := range a.spans {
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(x, y *span) int { return int(x.Partition) - int(y.Partition) })
	return spans
}

// pause waits before a second look.
func (a *Auditor) pause(ctx context.Context) error {
	timer := time.NewTimer(a.options.Recheck)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
