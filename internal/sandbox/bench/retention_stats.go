package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	// statsRequests are made one after the other, statsGoal is their 99th percentile in ms.
	statsRequests = 200
	statsGoal     = 50
	// statsRecords are consumed in each round, with the page polled each statsEvery and without.
	statsRecords = 150_000
	statsEvery   = time.Second
	polledGoal   = 0.95
	// statsHistory is how many days of counters there are, of statsLanes partitions.
	statsHistory, statsLanes = 400, 24
)

// statistics is the page over ten million rows: how long does it take, and whom does it slow down?
func (b *bench) statistics(ctx context.Context, name string) error {
	database := b.name("shown")
	rows := max(smallest, int(manyRows*b.options.Scale))
	b.options.Say("%-10s filling %s rows over %d days", name, thousands(float64(rows), 0), rangeDays)
	if err := b.ranged(ctx, database, rows); err != nil {
		return err
	}
	group := b.name("billing")
	history := max(2, int(statsHistory*b.options.Scale))
	if err := b.fillCounters(ctx, database, group, history); err != nil {
		return err
	}
	quiet, err := b.requests(ctx, database, group, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p50, p99, worst := quantile(quiet, .5), quantile(quiet, .99), highest(quiet)
	row := Row{Scenario: name, Figure: "GET /api/v1/dedup/stats, p99 ms", Digits: 1, Billing: &p99}
	b.add(row.atMost(statsGoal, &p99, "ms"),
		Row{Scenario: name, Figure: "median ms", Digits: 1, Billing: &p50}, Row{Scenario: name, Figure: "longest ms", Digits: 1, Billing: &worst})
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("%s: %d requests over all windows at %s rows and %d days of counters of %d partitions",
		name, statsRequests, thousands(float64(rows), 0), history, statsLanes))
	if err := b.polled(ctx, name, database); err != nil {
		return err
	}
	return b.books.drop(ctx, database)
}

// polled measures the throughput with the page polled and without, in turns.
func (b *bench) polled(ctx context.Context, name, database string) error {
	ways := []string{name + " polled", name + " left alone"}
	var asked []time.Duration
	poll := func(ctx context.Context, m *measurement) error {
		for sleep(ctx, statsEvery) == nil {
			took, _, err := m.subject.stats(ctx, "1h")
			if err != nil {
				return err
			}
			asked = append(asked, took)
		}
		return nil
	}
	for round := 1; round <= b.options.Rounds; round++ {
		// Every run adds to the same tables: they take turns at being the first of a round.
		order := slices.Clone(ways)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for _, way := range order {
			l, err := b.backlog(ctx, b.options.scaled(statsRecords), b.options.Partitions)
			if err != nil {
				return err
			}
			t := task{scenario: way, mode: Billing, round: round, load: l, database: database}
			if way == ways[0] {
				t.beside = poll
			}
			if err := b.once(ctx, t); err != nil {
				return err
			}
		}
	}
	with, without := b.report.of(ways[0], Billing).median(rate), b.report.of(ways[1], Billing).median(rate)
	row := Row{Scenario: name, Figure: "charges/s with the page polled each second", Ceiling: without, Billing: with}
	b.add(row.atLeast(polledGoal, ratio(with, without), "× left alone"))
	worst := highest(asked)
	b.add(Row{Scenario: name, Figure: "longest answer under load, ms", Digits: 1, Billing: &worst})
	return nil
}

// fillCounters makes days of sums of busy partitions, as if they had been rolled up.
func (w *World) fillCounters(ctx context.Context, database, group string, days int) error {
	for span, reach := range map[string]int{"minute": min(days, 7), "hour": days, "day": days, "ever": 0} {
		if err := w.execute(ctx, database, fillSums, span, group, reach, statsLanes-1); err != nil {
			return fmt.Errorf("fill dedup_stat_rollup: %w", err)
		}
	}
	return w.settleTables(ctx, database, "dedup_stat_rollup")
}

const fillSums = `
INSERT INTO dedup_stat_rollup (span, consumer_group, at, topic, partition, received, processed, recovered, redelivered,
	republished, conflicting, invalid, captured, declined, duplicate_order, discarded, non_v7)
SELECT $1::text, $2::text, at, 'orders-before', p, 10, 9, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0
FROM generate_series(
	CASE $1::text WHEN 'ever' THEN to_timestamp(0) ELSE date_trunc('day', now(), 'UTC') - make_interval(days => $3::integer) END,
	CASE $1::text WHEN 'ever' THEN to_timestamp(0) ELSE date_trunc('day', now(), 'UTC') END,
	CASE $1::text WHEN 'minute' THEN interval '1 minute' WHEN 'hour' THEN interval '1 hour' ELSE interval '1 day' END) AS at,
	generate_series(0, $4::integer) AS p`

// requests asks a billing without a load, which must know of the rows.
func (w *World) requests(ctx context.Context, database, group string, rows int) (took []time.Duration, err error) {
	l, err := w.newLoad(ctx, smallest, w.options.Partitions)
	if err != nil {
		return nil, err
	}
	s, err := w.startSubject(Billing, l.topic, group, database, l.partitions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(context.WithoutCancel(ctx))) }()
	if err := s.awaitReady(ctx); err != nil {
		return nil, err
	}
	for n := range statsRequests {
		window := []string{"1m", "1h", "24h", "7d", "30d", "365d", "all"}[n%7]
		one, known, err := s.stats(ctx, window)
		if err != nil {
			return nil, err
		}
		if known < int64(rows)*9/10 {
			return nil, fmt.Errorf("the page knows of %d rows, there are %d", known, rows)
		}
		took = append(took, one)
	}
	return took, nil
}

// stats asks for the statistics of a window, and returns how long the answer took and how many rows it knows of.
func (s *subject) stats(ctx context.Context, window string) (took time.Duration, rows int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/api/v1/dedup/stats?window=%s", s.port, window), http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("statistics: %w", err)
	}
	defer response.Body.Close()
	var page struct {
		Table struct {
			Rows int64 `json:"rows"`
		} `json:"processed_event"`
	}
	err = json.NewDecoder(response.Body).Decode(&page)
	took = time.Since(began)
	switch {
	case response.StatusCode != http.StatusOK:
		return 0, 0, fmt.Errorf("statistics of %s: %s", window, response.Status)
	case err != nil:
		return 0, 0, fmt.Errorf("statistics of %s: %w", window, err)
	}
	return took, page.Table.Rows, nil
}

// quantile of some times, in ms.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[int(q*float64(len(sorted)-1))]) / float64(time.Millisecond)
}
