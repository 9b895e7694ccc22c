package admin_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// archive is a domain.Archive in memory: small, and true to the contract.
type archive struct {
	mu      sync.Mutex
	stats   []domain.Stats
	table   domain.ProcessedEventTable
	stories map[uuid.UUID]domain.EventStory
	charges []domain.Charge
	letters []domain.Letter
	actions []domain.Action
	log     []domain.Duplicate // oldest first
	turn    *domain.RetentionReport

	fault   error         // every read fails with it
	entered chan struct{} // gets a value for each read that begins, when it is set
	release chan struct{} // and the read waits until this is closed
}

// begin is what every read does first.
func (a *archive) begin(ctx context.Context) error {
	if a.entered != nil {
		a.entered <- struct{}{}
		select {
		case <-a.release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return a.fault
}

func (a *archive) DedupSeries(ctx context.Context, group string, since time.Time, step domain.SeriesStep) (domain.DedupSeries, error) {
	series := domain.DedupSeries{Step: step, Since: since.UTC().Truncate(step.Width())}
	if err := a.begin(ctx); err != nil {
		return series, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	points := map[time.Time]domain.Counters{}
	for _, stats := range a.stats {
		for key, counters := range stats {
			if at := key.Minute.UTC().Truncate(step.Width()); key.Group == group && !at.Before(series.Since) {
				points[at] = points[at].Plus(counters)
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(points), time.Time.Compare) {
		series.Points = append(series.Points, domain.SeriesPoint{At: at, Counters: points[at]})
	}
	return series, nil
}

func (a *archive) DedupStats(ctx context.Context, group string, since time.Time) (domain.DedupStats, error) {
	if err := a.begin(ctx); err != nil {
		return domain.DedupStats{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	type place struct {
		topic     string
		partition int32
	}
	places := map[place]*domain.WindowStats{}
	at := func(topic string, partition int32) *domain.WindowStats {
		p := place{topic, partition}
		if places[p] == nil {
			places[p] = &domain.WindowStats{}
		}
		return places[p]
	}
	for _, stats := range a.stats {
		for key, counters := range stats {
			if key.Group == group && !key.Minute.Before(since) {
				w := at(key.Topic, key.Partition)
				w.Counters = w.Plus(counters)
			}
		}
	}
	for _, story := range a.stories {
		if in := story.Intent; in != nil && in.Group == group && in.Claimed {
			w := at(in.Record.Topic, in.Record.Partition)
			if in.State.Dead() {
				w.Parked++
			} else {
				w.Unfinished++
			}
		}
	}
	result := domain.DedupStats{Table: a.table}
	for p, w := range places {
		result.Partitions = append(result.Partitions, domain.PartitionStats{Topic: p.topic, Partition: p.partition, WindowStats: *w})
		result.Total.Counters = result.Total.Plus(w.Counters)
		result.Total.Unfinished += w.Unfinished
		result.Total.Parked += w.Parked
	}
	slices.SortFunc(result.Partitions, func(x, y domain.PartitionStats) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	return result, nil
}

func (a *archive) Event(ctx context.Context, group string, id uuid.UUID) (domain.EventStory, bool, error) {
	if err := a.begin(ctx); err != nil {
		return domain.EventStory{}, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	story, found := a.stories[id]
	story.Group = group
	letters := make([]int64, len(story.Letters))
	for i := range story.Letters {
		letters[i] = story.Letters[i].ID
	}
	story.Actions = a.actionsOf(letters)
	return story, found && group == testGroup, nil
}

func (a *archive) Retention(ctx context.Context) (domain.RetentionReport, bool, error) {
	if err := a.begin(ctx); err != nil {
		return domain.RetentionReport{}, false, err
	}
	if a.turn == nil {
		return domain.RetentionReport{}, false, nil
	}
	return *a.turn, true, nil
}

func (a *archive) Duplicates(ctx context.Context, f domain.DuplicateFilter) (domain.Page[domain.Duplicate], error) {
	if err := a.begin(ctx); err != nil {
		return domain.Page[domain.Duplicate]{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []domain.Duplicate
	for _, d := range slices.Backward(a.log) {
		if d.Group == f.Group && (f.EventID == uuid.Nil || d.EventID == f.EventID) && (f.Kind == "" || d.Kind == f.Kind) {
			found = append(found, d)
		}
	}
	return cut(found, f.Cursor, f.Limit)
}

func (a *archive) Charges(ctx context.Context, f domain.ChargeFilter) (domain.Page[domain.Charge], error) {
	if err := a.begin(ctx); err != nil {
		return domain.Page[domain.Charge]{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []domain.Charge
	for _, c := range a.charges {
		if (f.OrderID == 0 || c.OrderID == f.OrderID) && (f.Status == "" || c.Status == f.Status) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(x, y domain.Charge) int { return y.SettledAt.Compare(x.SettledAt) })
	return cut(found, f.Cursor, f.Limit)
}

func (a *archive) Letters(ctx context.Context, f domain.LetterFilter) (domain.Page[domain.Letter], error) {
	if err := a.begin(ctx); err != nil {
		return domain.Page[domain.Letter]{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []domain.Letter
	for _, l := range a.letters {
		if (f.Reason == "" || l.Reason == f.Reason) && (f.State == "" || l.State == f.State) &&
			(f.EventID == uuid.Nil || l.EventID == f.EventID) &&
			!l.At.Before(f.Since) && (f.Until.IsZero() || l.At.Before(f.Until)) {
			l.Record.Key, l.Record.Value, l.Record.Headers = nil, nil, nil
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(x, y domain.Letter) int { return cmp.Compare(y.ID, x.ID) })
	return cut(found, f.Cursor, f.Limit)
}

func (a *archive) Letter(ctx context.Context, id int64) (domain.Letter, bool, error) {
	if err := a.begin(ctx); err != nil {
		return domain.Letter{}, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.letters {
		if l.ID == id {
			return l, true, nil
		}
	}
	return domain.Letter{}, false, nil
}

func (a *archive) Actions(_ context.Context, letters []int64) ([]domain.Action, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.actionsOf(letters), nil
}

func (a *archive) actionsOf(letters []int64) []domain.Action {
	var found []domain.Action
	for _, action := range slices.Backward(a.actions) {
		if slices.Contains(letters, action.LetterID) {
			found = append(found, action)
		}
	}
	return found
}

// cut returns a page: its cursor is "after-" and how many items came before.
func cut[T any](all []T, cursor string, limit int) (domain.Page[T], error) {
	from := 0
	if cursor != "" {
		n, ok := strings.CutPrefix(cursor, "after-")
		var err error
		if from, err = strconv.Atoi(n); err != nil || !ok || from < 0 || from > len(all) {
			return domain.Page[T]{}, domain.ErrCursor
		}
	}
	to := min(from+limit, len(all))
	page := domain.Page[T]{Items: all[from:to]}
	if to < len(all) {
		page.Next = "after-" + strconv.Itoa(to)
	}
	return page, nil
}
