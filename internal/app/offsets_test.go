package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/app"
	"example.com/billing/internal/payment/paymenttest"
)

// offsetsEnviron is what the offsets commands need to find the world.
func (w *world) offsetsEnviron() []string {
	return []string{
		"KAFKA_BROKERS=" + strings.Join(w.brokers, ","), "KAFKA_TOPIC=" + w.topic, "KAFKA_GROUP_ID=" + w.group,
		"DATABASE_URL=" + w.url, "OFFSET_STORE=" + w.offsets,
	}
}

// show returns what billing offsets show says.
func (w *world) show() (r app.OffsetsReport) {
	w.t.Helper()
	code, out, errs := command(w.t, w.offsetsEnviron(), "offsets", "show", "--json")
	require.Zero(w.t, code, errs)
	require.NoError(w.t, json.Unmarshal([]byte(out), &r))
	return r
}

// deserted waits until the group has no live member.
func (w *world) deserted() {
	w.t.Helper()
	w.eventually("the group has no members", func() bool { return w.show().Members == 0 })
}

func TestPositionsInTheDatabaseSurviveTheDeletionOfTheGroup(t *testing.T) {
	t.Parallel()
	w := setupIn(t, "postgres", 3, paymenttest.Faults{})
	w.orders(90, 3)
	first := w.start(nil)
	w.settled()
	var consumer struct {
		OffsetStore string `json:"offset_store"`
	}
	require.Equal(t, http.StatusOK, first.get("/api/v1/consumer", &consumer))
	require.Equal(t, "postgres", consumer.OffsetStore)
	first.Stop()
	w.deserted()
	deleted, err := w.admin.DeleteGroups(t.Context(), w.group)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())

	w.orders(30, 3) // of the same orders
	second := w.start(nil)
	w.settled()
	n := second.stats()
	require.EqualValues(t, 120, n.Received, "no record from before the positions came again")
	require.EqualValues(t, 90, n.Captured)
	require.EqualValues(t, 30, n.DuplicateOrder)
}

func TestOffsetsAreShownAndReset(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		w := setupIn(t, offsets, 2, paymenttest.Faults{})
		w.orders(20, 2)
		time.Sleep(2 * time.Millisecond) // the records' times count in milliseconds
		between := time.Now()
		w.orders(10, 2)
		s := w.start(patient(nil))
		w.settled()
		reset := func(args ...string) (code int, out, errs string) {
			return command(t, w.offsetsEnviron(), append([]string{"offsets", "reset"}, args...)...)
		}
		code, _, errs := reset("--to", "earliest", "--yes")
		require.Equal(t, 1, code)
		require.Contains(t, errs, "1 live members")
		s.Stop()
		w.deserted()

		var database *int64
		if offsets == "postgres" {
			database = new(int64(15))
		}
		at := func(partition int32) app.PartitionOffsets {
			return app.PartitionOffsets{Partition: partition, Database: database, Kafka: new(int64(15)), End: 15}
		}
		require.Equal(t, app.OffsetsReport{
			Topic: w.topic, Group: w.group, OffsetStore: offsets, Partitions: []app.PartitionOffsets{at(0), at(1)},
		}, w.show())
		code, out, _ := command(t, w.offsetsEnviron(), "offsets", "show")
		require.Zero(t, code)
		require.Contains(t, out, "partition")

		code, out, errs = reset("--to", between.UTC().Format(time.RFC3339Nano), "--dry-run")
		require.Zero(t, code, errs)
		require.Equal(t, fmt.Sprintf("would reset %[1]s/0 from 15 to 10\nwould reset %[1]s/1 from 15 to 10\n", w.topic), out)
		require.Equal(t, at(0), w.show().Partitions[0], "nothing was changed")

		code, out, errs = reset("--to", "4", "--partition", "1", "--yes")
		require.Zero(t, code, errs)
		require.Equal(t, fmt.Sprintf("reset %s/1 from 15 to 4\n", w.topic), out)
		r := w.show()
		require.Equal(t, at(0), r.Partitions[0])
		require.EqualValues(t, 11, r.Partitions[1].Lag)
		require.Equal(t, new(int64(4)), r.Partitions[1].Kafka)

		for _, wrong := range [][]string{{"--to", "99", "--yes"}, {"--to", "0", "--partition", "7", "--yes"}} {
			code, _, errs = reset(wrong...)
			require.Equal(t, 1, code, wrong)
			require.NotEmpty(t, errs)
		}
		require.Equal(t, r, w.show(), "nothing was changed")

		// What is read again is a duplicate.
		again := w.start(patient(nil))
		w.settled()
		n := again.stats()
		require.EqualValues(t, 30+11, n.Received)
		require.EqualValues(t, 11, n.Duplicates.Redelivered)
		require.EqualValues(t, 20, w.provider.Ledger().Posts)
		again.Stop()
		w.deserted()
		code, _, errs = reset("--to", "earliest", "--yes")
		require.Zero(t, code, errs)
		require.Equal(t, new(int64(0)), w.show().Partitions[0].Kafka)
	})
}

func TestOffsetsSayWhatIsWrongWithTheirUse(t *testing.T) {
	t.Parallel()
	kafka := []string{"KAFKA_BROKERS=127.0.0.1:1"}
	for want, run := range map[string]struct{ environ, args []string }{
		"one of: show, reset":          {kafka, []string{"offsets"}},
		"neither earliest, latest":     {kafka, []string{"offsets", "reset", "--to", "yesterday", "--yes"}},
		`--to ""`:                      {kafka, []string{"offsets", "reset", "--yes"}},
		"add --yes":                    {kafka, []string{"offsets", "reset", "--to", "earliest"}},
		"KAFKA_BROKERS is required":    {nil, []string{"offsets", "show"}},
		"DATABASE_URL is required":     {append(kafka, "OFFSET_STORE=postgres"), []string{"offsets", "show"}},
		"OFFSET_STORE=etcd":            {append(kafka, "OFFSET_STORE=etcd"), []string{"offsets", "show"}},
		"unknown flag: --partitions":   {kafka, []string{"offsets", "show", "--partitions", "1"}},
		`unknown command "1" for "bil`: {kafka, []string{"offsets", "show", "1"}},
	} {
		code, _, errs := command(t, run.environ, run.args...)
		require.Equal(t, 2, code, "%v: %s", run.args, errs)
		require.Contains(t, errs, want)
	}
	_, err := app.LoadOffsets(kafka)
	require.NoError(t, err, "without a database where Kafka keeps them")
}
