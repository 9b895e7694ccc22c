package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/store/storetest"
)

// columns are SQL expressions by column.
type columns map[string]string

func (c columns) with(d columns) columns {
	c = maps.Clone(c)
	maps.Copy(c, d)
	return c
}

// insert tries a row and rolls it back; it returns the constraint that refused it.
func (c columns) insert(t *testing.T, conn *pgx.Conn, table string) (constraint string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(c))
	values := make([]string, len(names))
	for i, n := range names {
		values[i] = c[n]
	}
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), fmt.Sprintf(`INSERT INTO %s ("%s") VALUES (%s)`, table, strings.Join(names, `", "`), strings.Join(values, ", ")))
	require.NoError(t, tx.Rollback(t.Context()))
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		require.Equal(t, "23514", pg.Code, pg.Message)
		return pg.ConstraintName
	}
	require.NoError(t, err)
	return ""
}

// validRows returns a row of each table that the schema takes.
func validRows() map[string]columns {
	const (
		now  = "now()"
		hash = "sha256('x')"
		id   = "gen_random_uuid()"
	)
	source := columns{"source_topic": "'t'", "source_partition": "0", "source_offset": "0"}
	return map[string]columns{
		"processed_event": source.with(columns{"event_id": id, "consumer_group": "'g'", "fingerprint": hash}),
		"charge": source.with(columns{
			"event_id": id, "order_id": "1", "customer_id": "1", "amount": "1.50", "currency": "'EUR'", "status": "'captured'",
			"attempts": "0", "claims_order": "true", "occurred_at": now, "settled_at": now, "fingerprint": hash,
			"provider_charge_id": "repeat('x', 255)", "decline_code": "'x'",
		}),
		"charge_intent": source.with(columns{
			"event_id": id, "order_id": "1", "request_hash": hash, "fingerprint": hash, "state": "'waiting'", "claimed": "false",
			"maybe_sent": "false", "token": id, "owner": "''", "due_at": now, "created_at": now, "attempts": "0", "last_error": "''",
			"consumer_group": "'g'", "traceparent": "''", "tracestate": "''", "record": "''", "record_timestamp": now,
			"lease_until": "NULL", "first_attempt_at": "NULL", "answer": "NULL",
		}),
		"dead_letter": {
			"topic": "'t'", "partition": "0", "offset": "0", "consumer_group": "'g'", "record_timestamp": now,
			"reason": "'r'", "detail": "''", "state": "'open'", "created_at": now, "updated_at": now,
		},
		"letter_action": {
			"letter_id": "1", "action": "'discard'", "actor": "'alice'", "reason": "'because'", "outcome": "'charged'",
			"result": "'captured'", "at": now,
		},
		"consumer_offset": {
			"consumer_group": "'g'", "topic": "'t'", "partition": "0", "offset": "0", "leader_epoch": "0", "metadata": "''",
			"epoch": "1", "moved_at": now,
		},
		"outbox": {"kind": "'event'"},
		"retention_turn": {
			"one": "true", "finished_at": now, "instance": "'i'", "report": "'{}'",
		},
		"dedup_stat_rollup": {
			"span": "'hour'", "consumer_group": "'g'", "at": now, "topic": "'t'", "partition": "0", "received": "0", "processed": "0",
			"recovered": "0", "redelivered": "0", "republished": "0", "conflicting": "0", "invalid": "0", "captured": "0", "declined": "0",
			"duplicate_order": "0", "discarded": "0", "non_v7": "0",
		},
		"duplicate_log": {
			"seen_at": now, "consumer_group": "'g'", "event_id": id, "kind": "'conflicting'", "topic": "'t'", "partition": "0", "offset": "1",
			"first_topic": "'t'", "first_partition": "0", "first_offset": "0",
		},
	}
}

// impossible rows: what no code may write. Each CHECK of the schema refuses one.
func impossibleRows() map[string]map[string]columns {
	sent := columns{"maybe_sent": "true", "first_attempt_at": "now()"}
	return map[string]map[string]columns{
		"processed_event": {"a short fingerprint": {"fingerprint": `'\x00'`}},
		"charge": {
			"no order":                      {"order_id": "0"},
			"no customer":                   {"customer_id": "0"},
			"no money":                      {"amount": "0"},
			"more money than is accepted":   {"amount": "1000000000000000"},
			"money that is no number":       {"amount": "'NaN'"},
			"money without an end":          {"amount": "'Infinity'"},
			"a currency in small letters":   {"currency": "'eur'"},
			"an unknown status":             {"status": "'paid'", "claims_order": "false"},
			"an empty provider's id":        {"provider_charge_id": "''"},
			"a long provider's id":          {"provider_charge_id": "repeat('x', 256)"},
			"an empty decline code":         {"decline_code": "''"},
			"a long decline code":           {"decline_code": "repeat('x', 256)"},
			"attempts below zero":           {"attempts": "-1"},
			"a short fingerprint":           {"fingerprint": `'\x00'`},
			"a capture without its order":   {"claims_order": "false"},
			"a decline that takes an order": {"status": "'declined'"},
			"a duplicate that takes one":    {"status": "'duplicate_order'"},
		},
		"charge_intent": {
			"no order":                             {"order_id": "0"},
			"a short request hash":                 {"request_hash": `'\x00'`},
			"a short fingerprint":                  {"fingerprint": `'\x00'`},
			"an unknown state":                     {"state": "'done'"},
			"attempts below zero":                  {"attempts": "-1"},
			"a call without a lease":               {"state": "'calling'"},
			"a lease without a call":               {"lease_until": "now()"},
			"a call that is due at another time":   {"state": "'calling'", "lease_until": "now() + interval '1s'"},
			"answered without an answer":           {"state": "'answered'"},
			"waiting though it may be sent":        sent,
			"held though it may be sent":           sent.with(columns{"state": "'held'"}),
			"an unknown outcome of nothing sent":   {"state": "'unknown'"},
			"parked though surely not sent":        {"state": "'parked'"},
			"maybe sent, without a first attempt":  {"state": "'unknown'", "maybe_sent": "true"},
			"answered, sent, and no first attempt": {"state": "'answered'", "answer": "'{}'", "maybe_sent": "true"},
		},
		"dead_letter": {"an unknown state": {"state": "'lost'"}},
		"duplicate_log": {
			"an unknown kind":            {"kind": "'twice'"},
			"half of a first sighting":   {"first_offset": "NULL"},
			"a topic without an offset":  {"first_partition": "NULL", "first_offset": "NULL"},
			"an offset without a record": {"first_topic": "NULL"},
		},
		"letter_action": {
			"an unknown action":          {"action": "'burn'"},
			"an unknown outcome":         {"outcome": "'perhaps'"},
			"nobody":                     {"actor": "''"},
			"a long story":               {"reason": "repeat('x', 501)"},
			"a discard without a reason": {"reason": "''"},
			"a replay with an outcome":   {"action": "'replay'"},
		},
		"consumer_offset": {
			"an offset below zero":            {"offset": "-1"},
			"a leader epoch below zero":       {"leader_epoch": "-1"},
			"an epoch of nobody":              {"epoch": "0"},
			"a position that was never moved": {"moved_at": "NULL"},
			"a move to no position":           {"offset": "NULL"},
		},
		"outbox":            {"an unknown kind": {"kind": "'rumour'"}},
		"retention_turn":    {"a second row": {"one": "false"}},
		"dedup_stat_rollup": {"an unknown span": {"span": "'week'"}},
	}
}

func TestTheSchemaRefusesImpossibleRows(t *testing.T) {
	t.Parallel()
	conn := storetest.Conn(t, storetest.URL(t))
	valid := validRows()
	tried := map[string]bool{}
	for table, rows := range impossibleRows() {
		require.Empty(t, valid[table].insert(t, conn, table), "a valid row of %s goes in", table)
		for name, change := range rows {
			constraint := valid[table].with(change).insert(t, conn, table)
			require.NotEmpty(t, constraint, "%s: %s", table, name)
			tried[table+"."+constraint] = true
		}
	}
	rows, err := conn.Query(t.Context(), `SELECT conrelid::regclass || '.' || conname FROM pg_constraint
		WHERE contype = 'c' AND connamespace = 'public'::regnamespace AND coninhcount = 0`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(tried)), "every CHECK has refused something")
}

// Every state that the protocol knows has a row that the schema takes.
func TestTheSchemaTakesEveryStateOfTheProtocol(t *testing.T) {
	t.Parallel()
	conn := storetest.Conn(t, storetest.URL(t))
	sent := columns{"maybe_sent": "true", "first_attempt_at": "now()"}
	for table, changes := range map[string][]columns{
		"charge_intent": {
			{"state": "'waiting'"},
			{"state": "'held'"},
			{"state": "'calling'", "lease_until": "now()"},
			sent.with(columns{"state": "'calling'", "lease_until": "now()"}),
			{"state": "'answered'", "answer": "'{}'"},
			sent.with(columns{"state": "'answered'", "answer": "'{}'"}),
			sent.with(columns{"state": "'unknown'"}), sent.with(columns{"state": "'parked'"}),
		},
		"charge": {
			{"status": "'captured'"},
			{"status": "'declined'", "claims_order": "false"},
			{"status": "'duplicate_order'", "claims_order": "false", "provider_charge_id": "NULL", "decline_code": "NULL"},
			{"status": "'discarded'", "claims_order": "false"},
			{"status": "'discarded'", "claims_order": "true"},
		},
		"dead_letter": {{"state": "'open'"}, {"state": "'replayed'"}, {"state": "'discarded'"}, {"state": "'resolved'"}},
	} {
		for _, change := range changes {
			require.Empty(t, validRows()[table].with(change).insert(t, conn, table), "%s %v", table, change)
		}
	}
}
