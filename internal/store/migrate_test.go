package store_test

import (
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
	"example.com/billing/migrations"
)

const tables = `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class
	WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'goose_db_version'`

func migrator(t *testing.T, databaseURL string) *store.Migrator {
	t.Helper()
	m, err := store.NewMigrator(databaseURL, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// steps is the number of migrations that the binary carries.
func steps(t *testing.T) int {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return len(files)
}

// versions are the numbers that the migrations' files bear, in order.
func versions(t *testing.T) (numbers []int64) {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	for _, file := range files {
		number, err := strconv.ParseInt(strings.SplitN(file, "_", 2)[0], 10, 64)
		require.NoError(t, err)
		numbers = append(numbers, number)
	}
	return numbers
}

func applied(t *testing.T, m *store.Migrator) (n int) {
	t.Helper()
	all, err := m.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, all, steps(t), "every migration is listed, applied or not")
	numbers := versions(t)
	for i, s := range all {
		require.Equal(t, numbers[i], s.Version)
		require.NotEmpty(t, s.Name)
		if !s.AppliedAt.IsZero() {
			n++
		}
	}
	return n
}

// Without it a service that does not migrate would call itself ready and fail at
// every batch.
func TestASchemaThatIsNotOursIsFoundOut(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.Empty(t)
	s, err := store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.ErrorContains(t, s.CheckSchema(t.Context()), `relation "processed_event" does not exist`)

	_, err = migrator(t, databaseURL).Up(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.CheckSchema(t.Context()))

	conn := storetest.Conn(t, databaseURL)
	for _, change := range []struct{ does, missing string }{ // each is found before the one above
		{`ALTER TABLE duplicate_log DROP COLUMN first_seen_at`, "column duplicate_log.first_seen_at does not exist"},
		{`ALTER TABLE dedup_stat DROP COLUMN delay_forgotten`, "column dedup_stat.delay_forgotten does not exist"},
		{`ALTER TABLE dedup_stat DROP COLUMN non_v7`, "column dedup_stat.non_v7 does not exist"},
		{`DROP TABLE dead_letter`, `relation "dead_letter" does not exist`},
		{`ALTER TABLE charge RENAME claims_order TO other`, "column charge.claims_order does not exist"},
		{`ALTER TABLE charge_intent DROP COLUMN record`, "column charge_intent.record does not exist"},
	} {
		_, err = conn.Exec(t.Context(), change.does)
		require.NoError(t, err)
		require.ErrorContains(t, s.CheckSchema(t.Context()), change.missing)
	}
}

func TestTheSchemaGoesUpAndDownAndUpAgain(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.Empty(t)
	conn, m := storetest.Conn(t, databaseURL), migrator(t, databaseURL)
	require.Zero(t, applied(t, m))
	up := func() {
		done, err := m.Up(t.Context())
		require.NoError(t, err)
		require.Len(t, done, steps(t))
		require.Equal(t, steps(t), applied(t, m))
		require.Equal(t, "charge charge_intent consumer_offset dead_letter dedup_stat dedup_stat_rollup duplicate_log letter_action "+
			"outbox outbox_0 outbox_1 outbox_2 outbox_3 outbox_4 outbox_5 outbox_cursor outbox_refused outbox_slot "+
			"processed_event processed_event_default retention_turn", value[string](t, conn, tables))
		done, err = m.Up(t.Context())
		require.NoError(t, err)
		require.Empty(t, done, "there is nothing more to do")
	}
	up()
	for left := steps(t); left > 0; left-- {
		taken, some, err := m.Down(t.Context())
		require.NoError(t, err)
		require.True(t, some)
		require.Equal(t, versions(t)[left-1], taken.Version)
		require.Equal(t, left-1, applied(t, m))
	}
	require.Empty(t, value[string](t, conn, tables), "down leaves nothing behind")
	_, some, err := m.Down(t.Context())
	require.NoError(t, err)
	require.False(t, some)
	up()
}

// Every instance of a deploy may migrate on its start: one works, the others wait.
func TestFourInstancesMigrateAtOnceAndEachStepIsDoneOnce(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.Empty(t)
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `SELECT pg_advisory_lock($1)`, lock.DefaultLockID) // a fifth, which works for long
	results, errs := make(chan int, 4), make(chan error, 4)
	for range 4 {
		m := migrator(t, databaseURL)
		go func() {
			done, err := m.Up(t.Context())
			errs <- err
			results <- len(done)
		}()
	}
	await(t, conn, 4, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND application_name = 'billing-migrate' AND query LIKE '%pg_try_advisory_lock%'`)
	require.Empty(t, errs)
	require.Empty(t, value[string](t, conn, tables), "nobody has begun")

	execute(t, conn, `SELECT pg_advisory_unlock($1)`, lock.DefaultLockID)
	var sum int
	for range 4 {
		require.NoError(t, <-errs)
		sum += <-results
	}
	require.Equal(t, steps(t), sum)
}

func TestAMigrationThatFailsIsAnErrorAndLeavesItsStepUndone(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.Empty(t)
	conn, m := storetest.Conn(t, databaseURL), migrator(t, databaseURL)
	execute(t, conn, `CREATE TABLE charge_intent (somebody_elses int)`)
	done, err := m.Up(t.Context())
	require.Equal(t, "42P07", stateOf(err))
	require.Len(t, done, 2, "it says what was applied before")
	require.Equal(t, 2, applied(t, m))
	execute(t, conn, `DROP TABLE charge_intent`)
	done, err = m.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, done, steps(t)-2, "it goes on where it stopped")
}

// The indexes that correctness rests on, by what they say rather than by name.
func TestTheSchemaHoldsTheUniqueKeysOfTheProtocol(t *testing.T) {
	t.Parallel()
	conn := storetest.Conn(t, storetest.URL(t))
	rows, err := conn.Query(t.Context(), `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE 'CREATE UNIQUE%'`)
	require.NoError(t, err)
	defs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, want := range []string{
		"ON ONLY public.processed_event USING btree (event_id, consumer_group)",
		"ON public.charge USING btree (event_id)",
		"ON public.charge USING btree (order_id) WHERE claims_order",
		"ON public.charge_intent USING btree (event_id)",
		"ON public.charge_intent USING btree (order_id) WHERE (state = ANY (ARRAY['calling'::text, 'unknown'::text, 'answered'::text, 'parked'::text]))",
		`ON public.dead_letter USING btree (topic, partition, "offset")`,
		"ON public.dedup_stat USING btree (consumer_group, topic, partition, minute)",
		"ON public.dedup_stat_rollup USING btree (span, consumer_group, at, topic, partition)",
		"ON public.consumer_offset USING btree (consumer_group, topic, partition)",
	} {
		var n int
		for _, def := range defs {
			if strings.HasSuffix(def, want) {
				n++
			}
		}
		require.Equal(t, 1, n, "%s among %q", want, defs)
	}
}
