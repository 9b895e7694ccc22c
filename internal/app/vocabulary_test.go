package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// object is JSON as a program meets it.
type object = map[string]any

// prints runs a command that succeeds, and returns each JSON value that it prints.
func (w *world) prints(args ...string) (values []object) {
	w.t.Helper()
	code, out, errs := command(w.t, w.environ("PAYMENT_URL="+w.payURL), append(args, "--json")...)
	require.Zero(w.t, code, errs)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var value object
		require.NoError(w.t, d.Decode(&value), out)
		values = append(values, value)
	}
	return values
}

func inside(t *testing.T, value any, path ...string) any {
	t.Helper()
	for _, member := range path {
		o, ok := value.(object)
		require.True(t, ok, "%s in %v", member, value)
		require.Contains(t, o, member)
		value = o[member]
	}
	return value
}

// camel is a name that the API does not use in what it answers.
var camel = regexp.MustCompile(`[a-z][A-Z]`)

// snake requires that every member goes by a name like those of the API.
func snake(t *testing.T, value any) {
	t.Helper()
	switch v := value.(type) {
	case object:
		for name, member := range v {
			require.NotRegexp(t, camel, name)
			snake(t, member)
		}
	case []any:
		for _, member := range v {
			snake(t, member)
		}
	}
}

// What a command prints as JSON is what the admin API answers, as far as both tell of it.
func TestCommandsPrintJSONByTheNamesAndUnitsOfTheAPI(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{Rules: []paymenttest.Rule{{Action: "400", Orders: []int64{2}}}})
	one, refused := newOrder(1), newOrder(2)
	w.produce(w.record(0, []byte(one.json())), w.record(0, []byte(one.json())), w.record(0, []byte(refused.json())))
	s := w.start(nil)
	w.settled()
	w.eventually("the first turn", func() bool { return !w.retained().FinishedAt.IsZero() })
	ask := func(path string) (answer object) {
		require.Equal(t, http.StatusOK, s.get(path, &answer))
		return answer
	}

	turn := w.prints("retention", "run")[0]
	table := inside(t, ask("/api/v1/dedup/stats"), "processed_event")
	for _, shared := range []string{"retention", "mode", "range_width", "ranges", "next_drop"} {
		require.Equal(t, inside(t, table, shared), inside(t, turn, shared), shared)
	}
	require.Equal(t, "168h", inside(t, turn, "retention"))
	require.Equal(t, inside(t, table, "default_partition", "blocked_by"), inside(t, turn, "default_partition", "blocked_by"))
	latest, ok := inside(t, table, "last_turn").(object)
	require.True(t, ok)
	for member, want := range latest {
		require.Equal(t, want, inside(t, turn, member), member)
	}
	chores, ok := turn["chores"].([]any)
	require.True(t, ok)
	require.Len(t, chores, 3)
	for _, chore := range chores {
		require.Regexp(t, `^[0-9.]+(µs|ms|s)$`, inside(t, chore, "took"), "a duration, with its unit")
	}

	var letter int64
	require.NoError(t, w.db.QueryRow(t.Context(), "SELECT id FROM dead_letter").Scan(&letter))
	var answer object
	require.Equal(t, http.StatusOK, s.post(fmt.Sprintf("/api/v1/dead-letters/%d/replay?dryRun=true", letter), "", &answer))
	replay := w.prints("replay", "--all", "--dry-run")[0]
	first := object{"topic": w.topic, "partition": 0., "offset": 2.}
	require.Equal(t, first, replay["source"], "where it was first seen, as the API tells of an event")
	delete(replay, "source")
	require.Equal(t, answer, replay)

	offsets := w.prints("offsets", "show")[0]
	consumer := ask("/api/v1/consumer")
	for _, shared := range []string{"topic", "group", "offset_store"} {
		require.Equal(t, consumer[shared], offsets[shared])
	}
	assignment, ok := consumer["assignment"].([]any)
	require.True(t, ok)
	partitions, ok := offsets["partitions"].([]any)
	require.True(t, ok)
	for _, shared := range []string{"partition", "committed_offset", "high_watermark", "lag"} {
		require.Equal(t, inside(t, assignment[0], shared), inside(t, partitions[0], shared), shared)
	}

	audited := w.prints("audit", "--list")
	charge := ask("/api/v1/events/" + one.id.String())
	for _, shared := range []string{"event_id", "order_id", "amount", "currency", "source"} {
		require.Equal(t, inside(t, charge, "charge", shared), inside(t, audited[0], shared), shared)
	}
	require.Equal(t, audited[0]["source"], audited[1]["first"], "of a duplicate, as the API tells of it")
	report := audited[len(audited)-1]
	read, ok := report["partitions"].([]any)
	require.True(t, ok)
	require.InDelta(t, 3, inside(t, read[0], "committed_offset"), 0)
	for _, printed := range append(audited, turn, replay, offsets) {
		snake(t, printed)
	}
}
