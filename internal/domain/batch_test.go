package domain

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// recordOf returns the record of an event of an order at an offset.
func recordOf(id uuid.UUID, order, offset int64) Record {
	return Record{
		Coordinates: Coordinates{Topic: "t", Partition: 3, Offset: offset},
		Value: fmt.Appendf(nil, `{"eventId":%q,"eventType":"order.confirmed.v1","occurredAt":"2026-03-14T11:00:00Z",`+
			`"orderId":%d,"customerId":7,"totalAmount":10.00,"currency":"EUR"}`, id, order),
	}
}

func TestABatchTellsTheFirstRecordOfAnEventFromItsRepetitions(t *testing.T) {
	t.Parallel()
	a, b := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	records := []Record{
		recordOf(b, 2, 10), recordOf(a, 1, 11),
		{Value: []byte("{")},
		recordOf(b, 2, 12),
		recordOf(a, 99, 13), recordOf(b, 2, 10),
	}
	batch := newBatch(Decoder{}, records)

	require.Len(t, batch.items, 6)
	for i, it := range batch.items {
		require.Same(t, &records[i], it.record, "in the order of the records")
		require.Equal(t, Withheld, it.answer.Kind, "nothing was sent for it")
	}
	require.Error(t, batch.items[2].invalid)
	require.Equal(t, []*item{batch.items[0], batch.items[1]}, batch.leaders)
	require.Equal(t, []*item{batch.items[3], batch.items[5]}, batch.followers[batch.items[0]])
	require.Equal(t, []*item{batch.items[4]}, batch.followers[batch.items[1]])

	claims := batch.sightings()
	require.Len(t, claims, 2)
	require.Equal(t, []uuid.UUID{a, b}, []uuid.UUID{claims[0].EventID, claims[1].EventID}, "by event id, not by offset")
	require.Equal(t, Sighting{EventID: b, Source: records[0].Coordinates, Fingerprint: batch.items[0].fingerprint}, claims[1])

	batch.items[0].first, batch.items[1].first = claims[1], claims[0]
	batch.follow()
	require.Equal(t, fateRepublished, batch.items[3].fate, "at another offset")
	require.Equal(t, fateRedelivered, batch.items[5].fate, "at the same offset")
	require.Equal(t, fateConflicting, batch.items[4].fate, "of another order")
}

func TestClaimsOfABatchAreSorted(t *testing.T) {
	t.Parallel()
	records := make([]Record, 200)
	for i := range records {
		records[i] = recordOf(uuid.New(), int64(i+1), int64(i))
	}
	claims := newBatch(Decoder{}, records).sightings()
	require.True(t, slices.IsSortedFunc(claims, func(x, y Sighting) int { return bytes.Compare(x.EventID[:], y.EventID[:]) }))
}

func TestABatchKnowsWhatItSendsAndWhatItOpened(t *testing.T) {
	t.Parallel()
	batch := newBatch(Decoder{}, []Record{recordOf(uuid.New(), 1, 1), recordOf(uuid.New(), 2, 2), recordOf(uuid.New(), 3, 3)})
	batch.items[0].fate, batch.items[1].fate, batch.items[2].fate = fateCharged, fateTaken, fateCharged
	batch.items[1].opened, batch.items[2].opened = &Intent{}, &Intent{}
	require.Equal(t, []*item{batch.items[0], batch.items[2]}, batch.charging())
	require.Equal(t, []*item{batch.items[1], batch.items[2]}, batch.opened())
	require.Equal(t, []Subject{{batch.items[0].event.ID, 1}, {batch.items[2].event.ID, 3}}, subjects(batch.charging()))
}

// What the book says about a fresh event, and what the batch makes of it. The
// first line that applies holds.
func TestTheBookDecidesTheFateOfAFreshEvent(t *testing.T) {
	t.Parallel()
	self, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	here, there := Coordinates{Topic: "t", Partition: 3, Offset: 1}, Coordinates{Topic: "t", Partition: 3, Offset: 2}
	record := recordOf(self, 42, here.Offset)
	meaning := newBatch(Decoder{}, []Record{record}).items[0].fingerprint
	own := func(claimed bool, at Coordinates, f Fingerprint) map[uuid.UUID]*Intent {
		return map[uuid.UUID]*Intent{self: {EventID: self, Claimed: claimed, Fingerprint: f, Record: Record{Coordinates: at}}}
	}
	final := func(at Coordinates, f Fingerprint) map[uuid.UUID]Charge {
		return map[uuid.UUID]Charge{self: {EventID: self, Source: at, Fingerprint: f}}
	}
	taken := map[int64]Charge{42: {EventID: other}}
	held := map[int64]uuid.UUID{42: other}

	for name, tc := range map[string]struct {
		facts Facts
		want  fate
	}{
		"nothing is known":                            {Facts{}, fateCharged},
		"something else is known":                     {Facts{Orders: map[int64]Charge{43: {}}, Holders: map[int64]uuid.UUID{43: other}}, fateCharged},
		"it is final, from this record":               {Facts{Charges: final(here, meaning), Orders: taken, Holders: held}, fateRedelivered},
		"it is final, from another record":            {Facts{Charges: final(there, meaning), Intents: own(false, here, meaning)}, fateRepublished},
		"it is final with another meaning":            {Facts{Charges: final(here, Fingerprint{})}, fateConflicting},
		"its claimed intent is of this record":        {Facts{Intents: own(true, here, meaning), Orders: taken}, fateRedelivered},
		"its claimed intent is of another record":     {Facts{Intents: own(true, there, meaning)}, fateRepublished},
		"its claimed intent has another meaning":      {Facts{Intents: own(true, here, Fingerprint{})}, fateConflicting},
		"its lost intent has another meaning":         {Facts{Intents: own(false, here, Fingerprint{})}, fateConflicting},
		"its lost intent waits to be claimed":         {Facts{Intents: own(false, here, meaning), Orders: taken}, fateAdopted},
		"its lost intent is of another record":        {Facts{Intents: own(false, there, meaning), Holders: map[int64]uuid.UUID{42: self}}, fateAdopted},
		"its order is charged":                        {Facts{Orders: taken, Holders: held}, fateTaken},
		"its order is being charged":                  {Facts{Holders: held}, fateSibling},
		"its order is claimed by an intent of itself": {Facts{Holders: map[int64]uuid.UUID{42: self}}, fateCharged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := newBatch(Decoder{}, []Record{record}).items[0]
			it.classify(tc.facts)
			require.Equal(t, tc.want, it.fate)
			if tc.want == fateTaken {
				require.Equal(t, other, it.order.EventID)
			}
			require.Equal(t, tc.want >= fateAdopted, it.fate.fresh())
		})
	}
}

// Once its intent stands, a batch looks past it at what others have done.
func TestLookingAgainLooksPastOnesOwnIntent(t *testing.T) {
	t.Parallel()
	self, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	for name, tc := range map[string]struct {
		opened bool
		orders map[int64]Charge
		want   fate
	}{
		"nothing has changed: it is sent":                   {true, nil, fateCharged},
		"the order was charged meanwhile":                   {true, map[int64]Charge{42: {EventID: other}}, fateTaken},
		"it was kept out by something that is gone already": {false, nil, fateSibling},
	} {
		it := newBatch(Decoder{}, []Record{recordOf(self, 42, 1)}).items[0]
		facts := Facts{Orders: tc.orders, Intents: map[uuid.UUID]*Intent{}, Holders: map[int64]uuid.UUID{}}
		if tc.opened {
			it.opened = &Intent{EventID: self}
			facts.Intents[self], facts.Holders[42] = it.opened, self
		}
		it.lookAgain(facts)
		require.Equal(t, tc.want, it.fate, name)
	}
}

func TestEveryRecordIsCountedByItsFate(t *testing.T) {
	t.Parallel()
	v7, v4 := uuid.Must(uuid.NewV7()), uuid.New()
	for f, want := range map[fate]Counters{
		fateRedelivered: {Received: 1, Redelivered: 1}, fateRepublished: {Received: 1, Republished: 1},
		fateConflicting: {Received: 1, Conflicting: 1}, fateAdopted: {Received: 1, Processed: 1},
		fateSibling: {Received: 1, Processed: 1}, fateTaken: {Received: 1, Processed: 1}, fateCharged: {Received: 1, Processed: 1},
	} {
		for id, nonV7 := range map[uuid.UUID]int64{v7: 0, v4: want.Processed} {
			e, in := leased()
			e.ID, in.EventID = id, id
			it := item{record: &in.Record, event: *e, fate: f, answer: Answer{Kind: Withheld}, order: &Charge{}}
			if f == fateCharged {
				it.opened = in
			}
			r := newRuling(&bounds, noon)
			require.NoError(t, r.rule(&it, in))
			want.NonV7 = nonV7
			want.Delays[DelayForgotten] = want.Duplicates()
			require.Equal(t, Stats{statKey("g", in.Record.Coordinates, noon): want}, r.stats, f)
			require.Equal(t, want.Received, want.Processed+want.Duplicates()+want.Invalid)
		}
	}
}

// What must be there is locked by then; where it is not, somebody was quicker.
func TestARulingOnAnIntentThatIsGoneLooksAgain(t *testing.T) {
	t.Parallel()
	for _, f := range []fate{fateAdopted, fateCharged, fateTaken} {
		e, in := leased()
		it := item{record: &in.Record, event: *e, fate: f, opened: in, order: &Charge{}}
		require.ErrorIs(t, newRuling(&bounds, noon).rule(&it, nil), ErrMoved, f)
	}
}

func TestAnInvalidRecordIsCountedAndParkedWithItsReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why    error
		reason Reason
		detail string
	}{
		"a fault of a field":      {&InvalidError{Reason: ReasonOrderID, Field: "orderId", Detail: "too small"}, ReasonOrderID, "orderId: too small"},
		"a fault of the whole":    {&InvalidError{Reason: ReasonJSON, Detail: "broken"}, ReasonJSON, "broken"},
		"a fault within another":  {fmt.Errorf("decode: %w", &InvalidError{Reason: ReasonJSON, Detail: "broken"}), ReasonJSON, "broken"},
		"a fault without a cause": {errors.New("secret payload"), ReasonUnstorable, "unreadable"},
	} {
		record := recordOf(uuid.New(), 1, 5)
		r := newRuling(&bounds, noon)
		require.NoError(t, r.rule(&item{record: &record, invalid: tc.why}, nil), name)
		require.Equal(t, Stats{statKey("g", record.Coordinates, noon): {Received: 1, Invalid: 1}}, r.stats)
		require.Equal(t, []Letter{{
			Record: record, Reason: tc.reason, Detail: tc.detail, State: LetterOpen, Group: "g", At: noon,
		}}, r.letters)
		require.Empty(t, r.writes)
	}
}
