package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// insertBatches of insertRows each go into either table, in turns; a tenth of the rows are there already.
	insertBatches = 4000
	insertRows    = 256
	insertKnown   = insertRows / 10
	// insertGoal is what the ranges may cost.
	insertGoal = 0.9
	// insertTimeout bounds the batches of one table and the other.
	insertTimeout = 10 * time.Minute
	// plainTable has the columns and indexes of processed_event, and no ranges.
	plainTable = "plain_event"
)

// inserts is what the ranges cost the claim: the same batches into ranges and into a plain table.
func (b *bench) inserts(ctx context.Context, name string) error {
	database := b.name("ranged")
	rows := max(smallest, int(manyRows*b.options.Scale))
	b.options.Say("%-10s filling %s rows over %d days, twice", name, thousands(float64(rows), 0), rangeDays)
	if err := b.ranged(ctx, database, rows); err != nil {
		return err
	}
	if err := b.execute(ctx, database, `CREATE TABLE `+plainTable+` (LIKE processed_event INCLUDING ALL)`); err != nil {
		return err
	}
	all := span{days(rangeDays, time.Now())[0].from, time.Now()}
	if err := b.fillTable(ctx, database, plainTable, rows, all); err != nil {
		return err
	}
	if err := b.settleTables(ctx, database, plainTable); err != nil {
		return err
	}
	batches := max(20, int(insertBatches*b.options.Scale))
	took, err := b.insertInTurns(ctx, database, batches)
	if err != nil {
		return err
	}
	ranged, plain := perSecond(batches*insertRows, took["processed_event"]), perSecond(batches*insertRows, took[plainTable])
	row := Row{Scenario: name, Figure: "rows/s into ranges, beside a plain table", Ceiling: &plain, Billing: &ranged}
	b.add(row.atLeast(insertGoal, ratio(row.Billing, row.Ceiling), "× plain"))
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("%s: the ceiling is a plain table with the same columns and indexes; %s rows in either, "+
		"%d batches of %d rows in turns, a tenth of them known, each committed", name, thousands(float64(rows), 0), batches, insertRows))
	return b.books.drop(ctx, database)
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// insertInTurns inserts the same kind of batches into both tables, one after the other, and returns how long each took.
func (w *World) insertInTurns(ctx context.Context, database string, batches int) (took map[string]time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.postgres.URL(database))
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", database, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // its end is the end of the measurement
	tables := []string{"processed_event", plainTable}
	took = map[string]time.Duration{}
	known := map[string][]uuid.UUID{}
	for n := range batches {
		for _, table := range tables {
			ids := known[table]
			for len(ids) < insertRows {
				ids = append(ids, uuid.Must(uuid.NewV7()))
			}
			slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
			began := time.Now()
			if err := insertBatch(ctx, conn, table, ids); err != nil {
				return nil, err
			}
			if n > 0 { // the first one prepares the statement
				took[table] += time.Since(began)
			}
			known[table] = slices.Clone(ids[:insertKnown])
		}
		slices.Reverse(tables)
	}
	return took, nil
}

// insertBatch claims events as the flow does, in a transaction of its own.
func insertBatch(ctx context.Context, conn *pgx.Conn, table string, ids []uuid.UUID) error {
	var values strings.Builder
	args := make([]any, 0, 7*len(ids))
	for i, id := range ids {
		if i > 0 {
			values.WriteByte(',')
		}
		n := len(args)
		fmt.Fprintf(&values, "($%d,$%d,$%d,$%d,$%d,$%d,$%d)", n+1, n+2, n+3, n+4, n+5, n+6, n+7)
		args = append(args, id, "billing", time.Now(), "orders", int32(i%6), int64(i), make([]byte, 32))
	}
	rows, err := conn.Query(ctx, `INSERT INTO `+table+` (event_id, consumer_group, processed_at, source_topic, source_partition, source_offset, fingerprint) VALUES `+
		values.String()+` ON CONFLICT (event_id, consumer_group) DO NOTHING RETURNING *`, args...)
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}
