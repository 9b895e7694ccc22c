package protocol_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// toldRow is an outcome event in the outbox.
type toldRow struct {
	ID    uuid.UUID
	Event uuid.UUID
	Type  string
	Key   string
}

// outcomes returns the events in the outbox.
func (w *world) outcomes() []toldRow {
	w.t.Helper()
	return collect[toldRow](w, `SELECT (v->>'eventId')::uuid AS id, (v->>'orderEventId')::uuid AS event, v->>'eventType' AS type, key
		FROM (SELECT convert_from(value, 'UTF8')::jsonb AS v, convert_from(key, 'UTF8') AS key FROM outbox WHERE kind = 'event') AS o`)
}

// told requires that the outbox tells of every captured and declined charge exactly
// once, and of every dead letter.
func (w *world) told() {
	w.t.Helper()
	type final struct {
		EventID uuid.UUID
		OrderID string
		Status  string
	}
	want := []toldRow{}
	for _, c := range collect[final](w, `SELECT event_id, order_id::text, status FROM charge WHERE status IN ('captured', 'declined')`) {
		row := toldRow{Event: c.EventID, Type: "billing.charge-" + c.Status + ".v1", Key: c.OrderID}
		row.ID = domain.OutcomeEventID(row.Type, row.Event)
		want = append(want, row)
	}
	require.ElementsMatch(w.t, want, w.outcomes())
	told := map[string]bool{}
	for _, l := range w.lettersTold() {
		told[l.at] = true
	}
	type letter struct{ At string }
	for _, l := range collect[letter](w, `SELECT format('%s/%s@%s', topic, partition, "offset") AS at FROM dead_letter`) {
		require.True(w.t, told[l.At], "the dead letter of %s was never told of", l.At)
	}
}

// toldByHand appends the record of a dead letter that was written by hand.
func (w *world) toldByHand(r domain.Record) {
	w.t.Helper()
	headers, err := domain.EncodeHeaders([]domain.Header{
		{Key: domain.LetterHeaderTopic, Value: []byte(r.Topic)},
		{Key: domain.LetterHeaderPartition, Value: fmt.Append(nil, r.Partition)},
		{Key: domain.LetterHeaderOffset, Value: fmt.Append(nil, r.Offset)},
	})
	require.NoError(w.t, err)
	w.exec(`INSERT INTO outbox (kind, key, value, headers) VALUES ('dead_letter', $1, $2, $3)`, r.Key, r.Value, headers)
}

// toldLetter is a dead letter in the outbox.
type toldLetter struct{ at, reason string }

func reasonsOf(letters []toldLetter) (reasons []string) {
	for _, l := range letters {
		reasons = append(reasons, l.reason)
	}
	return reasons
}

// lettersTold returns the dead letters in the outbox, in order.
func (w *world) lettersTold() (letters []toldLetter) {
	w.t.Helper()
	type row struct{ Headers []byte }
	for _, r := range collect[row](w, `SELECT headers FROM outbox WHERE kind = 'dead_letter' ORDER BY id`) {
		headers, err := domain.DecodeHeaders(r.Headers)
		require.NoError(w.t, err)
		value := func(name string) string {
			v, _ := (&domain.Record{Headers: headers}).Header(domain.LetterHeaderPrefix + name)
			return string(v)
		}
		letters = append(letters, toldLetter{value("topic") + "/" + value("partition") + "@" + value("offset"), value("reason")})
	}
	return letters
}

func TestABatchThatIsLostTellsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	e := w.event(1, "10.50")
	bad := w.republished(0, domain.Record{Timestamp: w.clock.Now(), Value: []byte("{")})
	one.seam.once(mainCommits, func() error {
		require.Empty(t, w.outcomes(), "not before the commit")
		return errLost
	})
	require.ErrorIs(t, one.bill(e.record, bad), errLost)
	require.Empty(t, w.outcomes())
	require.Empty(t, w.lettersTold())
	one.mustBill(e.record, bad)
	require.Len(t, w.outcomes(), 1)
	require.Equal(t, []string{"invalid_json"}, reasonsOf(w.lettersTold()))
	w.balanced()
}

func TestEveryWayToAFinalChargeTellsIt(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]func(*world, *instance, event){
		"by the batch": func(_ *world, i *instance, e event) { i.mustBill(e.record) },
		"by a decline": func(w *world, i *instance, e event) { w.provider.script(e.id, declines); i.mustBill(e.record) },
		"by the worker": func(w *world, i *instance, e event) {
			w.provider.script(e.id, times)
			i.mustBill(e.record)
			later(w, i)
		},
		"from a stored answer": func(w *world, i *instance, e event) { loseCommit(w, i, e); i.mustBill(e.record) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			e := w.event(1, "10.50")
			bring(w, one, e)
			require.Len(t, w.outcomes(), 1)
			one.mustBill(w.republished(1, e.record))
			require.Len(t, w.outcomes(), 1, "a duplicate is no news")
			w.balanced()
		})
	}
}

func later(w *world, i *instance) {
	w.clock.advance(time.Hour)
	i.settle()
}

func loseCommit(w *world, i *instance, e event) {
	i.seam.once(mainCommits, func() error { return errLost })
	require.ErrorIs(w.t, i.bill(e.record), errLost)
	require.Empty(w.t, w.outcomes(), "an answer that was kept is not final yet")
}

func TestALetterIsToldWhenItIsNewOrOpenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	bad := w.republished(0, domain.Record{Timestamp: w.clock.Now(), Value: []byte("{")})
	one.mustBill(bad)
	one.mustBill(bad)
	require.Equal(t, []string{"invalid_json"}, reasonsOf(w.lettersTold()), "a redelivery is no news")

	e := w.event(1, "10.50")
	w.provider.script(e.id, rejects, rejects)
	one.mustBill(e.record)
	w.exec(`UPDATE charge_intent SET state = 'waiting', due_at = $1`, w.clock.Now())
	one.settle()
	require.Equal(t, []string{"invalid_json", "provider_rejected", "provider_rejected"}, reasonsOf(w.lettersTold()))
	w.balanced()
}

func TestWithoutATopicNothingIsAppended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy.PublishEvents, w.policy.PublishLetters = false, false
	one := w.instance("one")
	e, bad := w.event(1, "10.50"), w.republished(0, domain.Record{Timestamp: w.clock.Now(), Value: []byte("{")})
	one.mustBill(e.record, bad)
	w.final(e, "captured")
	require.Empty(t, w.outcomes())
	require.Empty(t, w.lettersTold())
}
