package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/billing/internal/sandbox/process"
)

const (
	// growthRecords are consumed at each size.
	growthRecords = 50_000
	// growthGoal is what a table of ten million rows may cost.
	growthGoal = 0.9
	// fillChunk is how many rows one statement inserts.
	fillChunk = 500_000
	// fillSpan is how far back the rows reach: within the default retention of seven days.
	fillSpan = 6 * 24 * time.Hour
	// migrateTimeout bounds the migrations.
	migrateTimeout = time.Minute
)

// rows is the throughput with processed_event filled.
func (b *bench) rows(ctx context.Context, name string) error {
	sizes := []int{0, int(1_000_000 * b.options.Scale), int(10_000_000 * b.options.Scale)}
	databases := make(map[int]string, len(sizes))
	for _, size := range sizes[1:] {
		database := b.name("grown")
		b.options.Say("%-10s filling processed_event with %s rows", name, thousands(float64(size), 0))
		if err := b.fill(ctx, database, size); err != nil {
			return err
		}
		databases[size] = database
	}
	for round := 1; round <= b.options.Rounds; round++ {
		l, err := b.backlog(ctx, b.options.scaled(growthRecords), b.options.Partitions)
		if err != nil {
			return err
		}
		// The empty one is new in each round. Whoever comes first finds the topic out of the caches: they take turns.
		first := round % len(sizes)
		for _, size := range slices.Concat(sizes[first:], sizes[:first]) {
			if err := b.once(ctx, task{scenario: grown(name, size), mode: Billing, round: round, load: l, database: databases[size]}); err != nil {
				return err
			}
		}
	}
	empty := b.report.of(grown(name, 0), Billing).median(rate)
	for i, size := range sizes {
		row := Row{Scenario: name, Figure: "charges/s at " + thousands(float64(size), 0) + " rows", Billing: b.report.of(grown(name, size), Billing).median(rate)}
		switch i {
		case 0:
		case len(sizes) - 1:
			row = row.atLeast(growthGoal, ratio(row.Billing, empty), "× empty")
		default:
			row.Measured, row.Unit = ratio(row.Billing, empty), "× empty"
		}
		b.add(row)
	}
	return nil
}

func grown(name string, size int) string { return fmt.Sprintf("%s %d", name, size) }

// fill makes a migrated database with rows of the past days in processed_event, whose
// ids are version 7 as those of events are.
func (w *World) fill(ctx context.Context, database string, rows int) error {
	if err := w.migrated(ctx, database); err != nil {
		return err
	}
	if err := w.fillTable(ctx, database, "processed_event", rows, span{time.Now().Add(-fillSpan), time.Now()}); err != nil {
		return err
	}
	return w.settleTables(ctx, database, "processed_event")
}

// migrated makes a migrated database.
func (w *World) migrated(ctx context.Context, database string) error {
	if err := w.postgres.CreateDatabase(ctx, database); err != nil {
		return err
	}
	return w.migrate(ctx, database)
}

// span is from one instant to another.
type span struct{ from, to time.Time }

// fillTable inserts rows into a table of the columns of processed_event, whose ids are made evenly
// within a span.
func (w *World) fillTable(ctx context.Context, database, table string, rows int, s span) error {
	step := float64(s.to.Sub(s.from).Milliseconds()) / float64(max(rows, 1))
	for from := 0; from < rows; from += fillChunk {
		to := min(from+fillChunk, rows)
		err := w.execute(ctx, database, fmt.Sprintf(fillRows, pgx.Identifier{table}.Sanitize()), from, to-1, s.from.UnixMilli(), step)
		if err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
	}
	return nil
}

// settleTables leaves filled tables as if they had been there for long.
func (w *World) settleTables(ctx context.Context, database string, tables ...string) error {
	for _, table := range tables {
		if err := w.execute(ctx, database, `VACUUM ANALYZE `+pgx.Identifier{table}.Sanitize()); err != nil {
			return fmt.Errorf("settle %s: %w", table, err)
		}
	}
	return w.execute(ctx, database, `CHECKPOINT`)
}

// execute runs one statement on a connection of its own, which does not wait for the disk.
func (w *World) execute(ctx context.Context, database, statement string, args ...any) error {
	return w.books.with(ctx, database, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, `SET synchronous_commit = off`); err != nil {
			return err
		}
		_, err := c.Exec(ctx, statement, args...)
		return err
	})
}

// fillRows inserts rows $1 to $2, whose time begins at $3 ms and is $4 ms apart.
const fillRows = `
INSERT INTO %s (event_id, consumer_group, processed_at, source_topic, source_partition, source_offset, fingerprint)
SELECT (lpad(to_hex(ms), 12, '0') || '7' || substr(h, 1, 3) || 'a' || substr(h, 4, 15))::uuid,
       'billing-before', to_timestamp(ms / 1000.0), 'orders-before', (n %% 6)::integer, n, sha256(h::bytea)
FROM (SELECT n, $3::bigint + floor(n * $4::float8)::bigint AS ms, md5(n::text) AS h FROM generate_series($1::bigint, $2::bigint) AS n) AS r`

// migrate brings a database to billing's schema.
func (w *World) migrate(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	_, err := process.Run(ctx, process.Spec{
		Path: w.options.Billing, Args: []string{"migrate", "up"},
		Env: environ(w.options.Environ, "DATABASE_URL="+w.postgres.URL(database)),
	})
	return err
}

// lanes is the throughput by the number of partitions.
func (b *bench) lanes(ctx context.Context, name string) error {
	for _, faults := range []string{"", slowFaults} {
		at := "0ms"
		if faults != "" {
			at = "50ms"
		}
		for _, partitions := range []int32{1, 6, 24} {
			l, err := b.backlog(ctx, b.options.scaled(growthRecords), partitions)
			if err != nil {
				return err
			}
			own := fmt.Sprintf("%s %d at %s", name, partitions, at)
			for round := 1; round <= b.options.Rounds; round++ {
				if err := b.once(ctx, task{scenario: own, mode: Billing, round: round, faults: faults, load: l}); err != nil {
					return err
				}
			}
			found := b.report.of(own, Billing)
			row := Row{Scenario: name, Figure: fmt.Sprintf("charges/s, %d, provider %s", partitions, at), Billing: found.median(rate)}
			b.add(row)
		}
	}
	return nil
}
