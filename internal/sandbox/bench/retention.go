package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/billing/internal/sandbox/process"
)

const (
	// manyRows are in processed_event, over so many ranges of a day.
	manyRows  = 10_000_000
	rangeDays = 8
	day       = 24 * time.Hour
)

// days are the last n days, the current one last, in UTC.
func days(n int, now time.Time) []span {
	today := now.UTC().Truncate(day)
	spans := make([]span, n)
	for i := range spans {
		from := today.Add(-time.Duration(n-1-i) * day)
		spans[i] = span{from, from.Add(day)}
	}
	return spans
}

// leaf is the name of a range, as billing names it.
func (s span) leaf() string {
	return "processed_event_" + s.from.Format("20060102") + "_" + s.to.Format("20060102")
}

// floor is the smallest id of an instant.
func floor(t time.Time) string {
	ms := fmt.Sprintf("%012x", t.UnixMilli())
	return ms[:8] + "-" + ms[8:] + "-0000-0000-000000000000"
}

// attach makes a range of processed_event.
func (w *World) attach(ctx context.Context, database string, s span) error {
	return w.execute(ctx, database, fmt.Sprintf(`CREATE TABLE %s PARTITION OF processed_event FOR VALUES FROM ('%s') TO ('%s')`,
		pgx.Identifier{s.leaf()}.Sanitize(), floor(s.from), floor(s.to)))
}

// ranged makes a migrated database with rows over ranges of the last days.
func (w *World) ranged(ctx context.Context, database string, rows int) error {
	if err := w.migrated(ctx, database); err != nil {
		return err
	}
	now := time.Now()
	all := days(rangeDays, now)
	for _, s := range all {
		if err := w.attach(ctx, database, s); err != nil {
			return err
		}
	}
	if err := w.fillTable(ctx, database, "processed_event", rows, span{all[0].from, now}); err != nil {
		return err
	}
	return w.settleTables(ctx, database, "processed_event")
}

const (
	// leafRows are in a day that is emptied, and emptyRecords are consumed meanwhile, by the provider.
	leafRows         = 1_250_000
	emptyRecordsFast = 400_000
	emptyRecordsTail = 200_000
	// emptyPause is the time without an emptying between two of them, at scale 1.
	emptyPause = 3 * time.Second
	// emptyAge is how long ago the youngest day is that is emptied.
	emptyAge = 10 * day
	// delayGoal is by how much an emptying may delay a batch, in ms.
	delayGoal = 500
)

// emptying is a day that is emptied and dropped under full load: whom does it hold up?
func (b *bench) emptying(ctx context.Context, name string) error {
	for _, load := range []struct {
		at, faults string
		records    int
	}{{"0ms", "", emptyRecordsFast}, {"lognormal", tailFaults, emptyRecordsTail}} {
		if err := b.emptyUnder(ctx, name, load.at, load.faults, load.records); err != nil {
			return err
		}
	}
	return nil
}

// emptyUnder empties as many days as there are rounds while a load is consumed.
func (b *bench) emptyUnder(ctx context.Context, name, at, faults string, records int) error {
	database := b.name("emptying")
	old, err := b.oldDays(ctx, database)
	if err != nil {
		return err
	}
	l, err := b.backlog(ctx, b.options.scaled(records), b.options.Partitions)
	if err != nil {
		return err
	}
	e := &emptier{world: b.World, database: database, days: old, pause: time.Duration(float64(emptyPause) * max(b.options.Scale, 0.1))}
	own := name + " " + at
	err = b.once(ctx, task{
		scenario: own, mode: Billing, round: 1, faults: faults, load: l, database: database,
		// Billing itself keeps all of these days: its retention is run by hand for each of them.
		settings: []string{"DEDUP_RETENTION=" + time.Since(old[0].from.Add(time.Hour)).Round(time.Second).String()}, beside: e.run,
	})
	if err == nil {
		err = e.judge(ctx, l.topic)
	}
	if err == nil {
		err = b.books.drop(ctx, database)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", own, err)
	}
	b.add(e.rows(name, at)...)
	b.report.Notes = append(b.report.Notes, e.note(own))
	return nil
}

// oldDays makes a database with a filled day for each round, long past; the oldest first.
func (b *bench) oldDays(ctx context.Context, database string) ([]span, error) {
	if err := b.migrated(ctx, database); err != nil {
		return nil, err
	}
	old := days(b.options.Rounds, time.Now().Add(-emptyAge))
	for _, s := range old {
		if err := b.attach(ctx, database, s); err != nil {
			return nil, err
		}
		rows := max(smallest, int(leafRows*b.options.Scale))
		b.options.Say("%-10s filling %s with %s rows", "emptying", s.leaf(), thousands(float64(rows), 0))
		if err := b.fillTable(ctx, database, s.leaf(), rows, s); err != nil {
			return nil, err
		}
		if err := b.settleTables(ctx, database, s.leaf()); err != nil {
			return nil, err
		}
	}
	return old, nil
}

// turned is what `billing retention run` says of its turn.
type turned struct {
	Emptied int    `json:"emptied"`
	Dropped int    `json:"dropped"`
	Error   string `json:"error"`
}

// turn makes one turn of retention in which no day but those up to s is due.
func (w *World) turn(ctx context.Context, m *measurement, s span) (t turned, err error) {
	retention := time.Since(s.to).Round(time.Second) - time.Minute
	env := environ(w.options.Environ,
		"KAFKA_BROKERS="+w.brokers, "KAFKA_TOPIC="+m.load.topic, "KAFKA_GROUP_ID="+m.group, "DATABASE_URL="+w.postgres.URL(m.database),
		"PAYMENT_URL="+w.provider.url, "ADMIN_INSECURE=true", "DEDUP_RETENTION="+retention.String())
	var out, said bytes.Buffer
	run := process.Command(ctx, process.Spec{Path: w.options.Billing, Args: []string{"retention", "run", "--shorten", "--json"}, Env: env, Dir: w.dir})
	run.Stdout, run.Stderr = &out, &said
	if err := run.Run(); err != nil {
		return t, fmt.Errorf("billing retention run: %w: %s", err, said.String())
	}
	if err := json.Unmarshal(out.Bytes(), &t); err != nil {
		return t, fmt.Errorf("billing retention run: %w", err)
	}
	if t.Error != "" {
		return t, errors.New("billing retention run: " + t.Error)
	}
	return t, nil
}

// highest of some times, in ms.
func highest(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	return float64(slices.Max(all)) / float64(time.Millisecond)
}
