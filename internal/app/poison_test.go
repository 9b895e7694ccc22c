package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The poisonous orders of the ten thousand, by what is the matter with them.
const (
	poisonStream  = 10_000
	poisonRefused = 20_001 // the provider answers 400
	poisonReused  = 20_002 // the provider answers 422
	poisonClaim   = 20_003 // the database refuses the event (SQLSTATE class 22)
	poisonCharge  = 20_004 // the database refuses its charge, after the money was taken
	poisonVersion = 20_005 // its id is not of the version that is asked for
	poisonJSON    = 20_006 // it is no JSON
)

// poisoned writes 10,000 records of which six are poison, one after the other in the middle, each of
// its own kind, and returns those by their order.
func (w *world) poisoned(partitions int32) map[int64]order {
	w.t.Helper()
	kinds := []int64{poisonRefused, poisonReused, poisonClaim, poisonCharge, poisonVersion, poisonJSON}
	poison := map[int64]order{}
	var records []*kgo.Record
	for n := range int64(poisonStream - len(kinds)) {
		records = append(records, w.record(int32(n)%partitions, []byte(newOrder(n+1).json())))
		if n != poisonStream/2 {
			continue
		}
		for _, kind := range kinds {
			o := newOrder(kind)
			if kind == poisonVersion {
				o.id = uuid.New()
			}
			poison[kind] = o
			text := o.json()
			if kind == poisonJSON {
				text = strings.TrimSuffix(text, "}")
			}
			records = append(records, w.record(0, []byte(text)))
		}
	}
	w.produce(records...)
	return poison
}

// refuse has the database refuse a row of an order; the cause is mended by the function that it returns.
func (w *world) refuse(table, condition string) (mend func()) {
	w.t.Helper()
	do := func(sql string) {
		_, err := w.db.Exec(w.t.Context(), sql)
		require.NoError(w.t, err, sql)
	}
	do(fmt.Sprintf(`CREATE FUNCTION refuse_%[1]s() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN IF %[2]s THEN RAISE EXCEPTION SQLSTATE '22000'; END IF; RETURN NEW; END $$`, table, condition))
	do(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON %[1]s FOR EACH ROW EXECUTE FUNCTION refuse_%[1]s()`, table))
	return func() { do(`DROP TRIGGER refuse ON ` + table) }
}

// reasonOf is that of the open letter of an order's record; the value tells them apart.
func (w *world) reasonOf(o order) (reason string) {
	w.t.Helper()
	require.NoError(w.t, w.db.QueryRow(w.t.Context(),
		`SELECT reason FROM dead_letter WHERE state = 'open' AND position($1::bytea IN value) > 0`, []byte(o.id.String())).Scan(&reason))
	return reason
}

// Poison of every kind in the middle of 10,000 records is one letter each, and all others are charged
// once. When the causes are mended, each letter is replayed and charged once; what can never be read is
// published anew by its producer.
func TestPoisonAmongTenThousandStopsNobodyAndIsChargedOnceItIsMended(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testPoisonAmongTenThousand)
}

func testPoisonAmongTenThousand(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 2, mustFaults(t, fmt.Sprintf("400=1@order:%d,422=1@order:%d", poisonRefused, poisonReused)))
	migrated := w.start(nil) // before there is anything to do
	w.eventually("migrated", func() bool { return migrated.get("/readyz", nil) == 200 })
	migrated.Stop()
	poison := w.poisoned(2)
	mendClaim := w.refuse("processed_event", fmt.Sprintf("NEW.event_id = '%s'", poison[poisonClaim].id))
	mendCharge := w.refuse("charge", fmt.Sprintf("NEW.order_id = %d", poisonCharge))

	// A slow machine is no fault of the provider's: no attempt may time out here.
	patient := map[string]string{"PAYMENT_TIMEOUT": "60s", "CHARGE_BUDGET": "60s", "SHUTDOWN_TIMEOUT": "120s"}
	strict := maps.Clone(patient)
	strict["REQUIRE_UUID_V7"] = "true"
	first := w.start(strict)
	w.settled()
	for kind, want := range map[int64]string{
		poisonRefused: "provider_rejected", poisonReused: "idempotency_conflict", poisonClaim: "invalid_unstorable",
		poisonCharge: "needs_reconciliation", poisonVersion: "invalid_event_id_not_v7", poisonJSON: "invalid_json",
	} {
		require.Equal(t, want, w.reasonOf(poison[kind]))
	}
	others := int64(poisonStream - len(poison))
	n := first.stats()
	require.EqualValues(t, poisonStream, n.Received)
	require.Equal(t, others, n.Captured)
	require.EqualValues(t, 3, n.Parked)
	require.EqualValues(t, 3, n.Invalid)
	require.Equal(t, others+1, w.provider.Ledger().Captures, "one of them was refused by the database, after the money was taken")
	require.EqualValues(t, poisonStream-3, w.provider.Ledger().Posts, "one for each that could be sent")
	first.Stop()

	require.NoError(t, w.provider.SetFaults(mustFaults(t, "")))
	mendClaim()
	mendCharge()
	code, out, errs := w.replay("--all", "--why", "the causes are mended", "--json")
	require.Equal(t, 1, code, errs)
	results := map[string]int{}
	for line := range strings.Lines(out) {
		var said struct{ Result string }
		require.NoError(t, json.Unmarshal([]byte(line), &said))
		results[said.Result]++
	}
	require.Equal(t, map[string]int{"sent_round": 3, "recovered": 2, "still_invalid": 1}, results)
	w.produce(w.record(1, []byte(poison[poisonJSON].json())))
	second := w.start(patient)
	w.settled()
	require.EqualValues(t, poisonStream, w.count(`SELECT count(*) FROM charge WHERE status = 'captured'`))
	ledger := w.provider.Ledger()
	require.EqualValues(t, poisonStream, ledger.Captures)
	require.Zero(t, ledger.DoubleCharges)
	for _, kind := range []int64{poisonClaim, poisonVersion, poisonJSON} {
		require.Equal(t, 1, w.posts(poison[kind]))
	}
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM dead_letter WHERE state = 'open'`), "the one that is published anew")
	require.EqualValues(t, 2, second.stats().Recovered)
}
