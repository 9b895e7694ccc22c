package store_test

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

// full sets every field of an intent that may be empty.
func full(in *domain.Intent) {
	in.State, in.Claimed, in.MaybeSent = domain.Answered, true, true
	in.Token, in.Owner = uuid.New(), "billing-7"
	in.DueAt = epoch.Add(3 * time.Microsecond)
	in.CreatedAt, in.FirstAttemptAt = epoch.Add(-2*time.Microsecond), epoch.Add(-time.Microsecond)
	in.OrderID, in.Attempts, in.LastError = math.MaxInt64, 9, "503 “later”"
	in.TraceParent, in.TraceState = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1"
	in.Answer = &domain.Answer{
		Kind: domain.Declined, Status: 402, ProviderChargeID: "ch_\"1\"", DeclineCode: "do_not_honour",
		Posts: 3, MaybeSent: true, Detail: "declined: it's so",
	}
	in.Record = domain.Record{
		Coordinates: domain.Coordinates{Topic: "orders.confirmed", Partition: math.MaxInt32, Offset: math.MaxInt64},
		Timestamp:   epoch.Add(-time.Hour), Key: []byte{0, 0xff}, Value: []byte("{\x00\xfe}"),
		Headers: []domain.Header{
			{Key: "twice", Value: []byte{0xff, 0}}, {Key: "twice", Value: []byte{}}, {Key: "none", Value: nil}, {Key: "\xff", Value: []byte("x")},
		},
	}
}

func TestAnIntentComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	for name, in := range map[string]domain.Intent{
		"with every field set": aWaiting(full),
		"with nothing that may be absent": aWaiting(func(in *domain.Intent) {
			in.Record.Key, in.Record.Headers = nil, nil
		}),
		"with an empty key and value, which are not absent ones": aWaiting(func(in *domain.Intent) {
			in.Record.Key, in.Record.Value = []byte{}, []byte{}
		}),
		"under a lease":       aCalling(),
		"unclaimed":           aWaiting(func(in *domain.Intent) { in.Claimed = false }),
		"parked":              aWaiting(inState(domain.Parked)),
		"without a timestamp": aWaiting(func(in *domain.Intent) { in.Record.Timestamp = time.Time{} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			put(t, s, in)
			got := locked(t, s, in.EventID)[in.EventID]
			in = read(in)
			require.Equal(t, &in, got)

			conn := storetest.Conn(t, databaseURL)
			require.Equal(t, in.FirstAttemptAt.IsZero(),
				value[bool](t, conn, `SELECT first_attempt_at IS NULL FROM charge_intent WHERE event_id = $1`, in.EventID))
			require.Equal(t, in.LeaseUntil.IsZero(),
				value[bool](t, conn, `SELECT lease_until IS NULL FROM charge_intent WHERE event_id = $1`, in.EventID))
		})
	}
}

func TestTimesAreKeptInMicroseconds(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	in := aCalling(func(in *domain.Intent) {
		in.LeaseUntil = in.LeaseUntil.Add(999)
		in.DueAt = in.LeaseUntil // must stay equal to the lease's end
	})
	put(t, s, in)
	got := locked(t, s, in.EventID)[in.EventID]
	require.Equal(t, epoch.Add(time.Minute), got.LeaseUntil)
	require.Equal(t, got.LeaseUntil, got.DueAt)
}

func TestAnUpdateChangesWhatTheProtocolMayChangeAndNothingElse(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	was := aCalling()
	put(t, s, was)
	now := aWaiting(full)
	now.EventID = was.EventID
	now.Was = read(was).Was
	write(t, s, domain.Writes{Update: []domain.Intent{now}})

	want := was
	want.State, want.Claimed, want.MaybeSent, want.Token, want.Owner = now.State, now.Claimed, now.MaybeSent, now.Token, now.Owner
	want.LeaseUntil, want.DueAt, want.FirstAttemptAt, want.Attempts = time.Time{}, now.DueAt, now.FirstAttemptAt, now.Attempts
	want.Answer, want.LastError = now.Answer, now.LastError
	want = read(want)
	require.Equal(t, &want, locked(t, s, was.EventID)[was.EventID])

	// And back: what was set can be unset, so that GORM must not skip zero values.
	was.Was = want.Was
	write(t, s, domain.Writes{Update: []domain.Intent{was}})
	was = read(was)
	require.Equal(t, &was, locked(t, s, was.EventID)[was.EventID])
}

func TestWriteInsertsUpdatesAndDeletesManyIntentsAtOnce(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	many := make([]domain.Intent, 1100) // more than two statements hold
	for i := range many {
		many[i] = aWaiting()
	}
	put(t, s, many...)
	conn := storetest.Conn(t, databaseURL)
	require.Equal(t, len(many), value[int](t, conn, `SELECT count(*) FROM charge_intent`))

	for i := range many {
		many[i] = read(many[i])
	}
	many[1099].LastError = "changed"
	write(t, s, domain.Writes{Update: many[1099:], Delete: ends(many[:1099]...)})
	require.Equal(t, "changed", value[string](t, conn, `SELECT last_error FROM charge_intent`))
}

func TestAWriteThatMeetsAnotherBookMovesNothing(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	there, gone, busy := aWaiting(), aWaiting(), aCalling()
	rival := aWaiting(ofOrder(busy.OrderID))
	put(t, s, there, busy, rival)
	final := aCharge()
	write(t, s, domain.Writes{Charges: []domain.Charge{final}})

	sameOrder := aCharge(func(c *domain.Charge) { c.OrderID = final.OrderID })
	pair := aCharge()
	for name, tc := range map[string]struct {
		writes domain.Writes
		want   error
	}{
		"a new intent that is there already":        {domain.Writes{Insert: []domain.Intent{aWaiting(), there}}, domain.ErrMoved},
		"an update of an intent that is gone":       {domain.Writes{Update: []domain.Intent{gone}}, domain.ErrMoved},
		"an end of an intent that is gone":          {domain.Writes{Delete: ends(read(there), read(gone))}, domain.ErrMoved},
		"an update of an intent with another lease": {domain.Writes{Update: []domain.Intent{read(there), asRead(busy, func(was *domain.Version) { was.Token = uuid.New() })}}, domain.ErrMoved},
		"an end of an intent in another state":      {domain.Writes{Delete: ends(asRead(busy, func(was *domain.Version) { was.State = domain.UnknownOutcome }))}, domain.ErrMoved},
		"an end of an intent claimed meanwhile":     {domain.Writes{Delete: ends(asRead(there, func(was *domain.Version) { was.Claimed = false }))}, domain.ErrMoved},
		"a second charge of an event":               {domain.Writes{Charges: []domain.Charge{aCharge(), final}}, domain.ErrMoved},
		"a second charge that claims an order":      {domain.Writes{Charges: []domain.Charge{sameOrder}}, domain.ErrMoved},
		"two charges of one event at once":          {domain.Writes{Charges: []domain.Charge{pair, pair}}, domain.ErrMoved},
		"a lease while another claims the order":    {domain.Writes{Update: []domain.Intent{aCallingAs(read(rival))}}, domain.ErrOrderTaken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			innocent := aWaiting()
			tc.writes.Insert = append(tc.writes.Insert, innocent)
			require.ErrorIs(t, tryWrite(t, s, tc.writes), tc.want)
			require.Empty(t, locked(t, s, innocent.EventID), "the whole transaction is undone")
		})
	}
}

// asRead returns an intent that was read when its row said otherwise.
func asRead(in domain.Intent, change func(*domain.Version)) domain.Intent {
	in = read(in)
	change(&in.Was)
	return in
}

// aCallingAs returns a waiting intent's next lease.
func aCallingAs(in domain.Intent) domain.Intent {
	in.Token, in.LeaseUntil, in.DueAt, in.State = uuid.New(), epoch, epoch, domain.Calling
	return in
}

func TestOrdersAreClaimedInTheStatesThatSaySo(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for _, state := range []domain.IntentState{
		domain.Waiting, domain.Calling, domain.UnknownOutcome, domain.Answered, domain.Parked, domain.Held,
	} {
		first := aWaiting(inState(state))
		put(t, s, first)
		second := aWaiting(ofOrder(first.OrderID))
		put(t, s, second)
		err := tryWrite(t, s, domain.Writes{Update: []domain.Intent{aCallingAs(read(second))}})
		if state.ClaimsOrder() {
			require.ErrorIs(t, err, domain.ErrOrderTaken, state)
		} else {
			require.NoError(t, err, state)
		}
	}
}

func TestLockReturnsTheIntentsThatExistAndHoldsThem(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	three := []domain.Intent{aWaiting(), aWaiting(), aWaiting()}
	put(t, s, three...)
	const free = `SELECT count(*) FROM (SELECT FROM charge_intent FOR UPDATE SKIP LOCKED) AS unlocked`
	within(t, s, func(tx domain.Tx) error {
		got, err := tx.Lock(t.Context(), []uuid.UUID{three[2].EventID, uuid.New(), three[0].EventID})
		require.Len(t, got, 2)
		require.Equal(t, three[0].Record, got[three[0].EventID].Record, "bytes and all")
		require.Equal(t, three[2].OrderID, got[three[2].EventID].OrderID)
		require.Equal(t, 1, value[int](t, conn, free))

		none, errNone := tx.Lock(t.Context(), nil)
		require.Empty(t, none)
		require.NoError(t, errNone)
		return err
	})
	require.Equal(t, 3, value[int](t, conn, free))
}

// Two transactions that lock intents in one order never wait in a circle.
func TestLockTakesTheRowsByOrderAndEvent(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	holder, watcher := storetest.Conn(t, databaseURL), storetest.Conn(t, databaseURL)
	four := []domain.Intent{aWaiting(ofOrder(7)), aWaiting(ofOrder(5)), aWaiting(ofOrder(7)), aWaiting(ofOrder(9))}
	put(t, s, four...)
	slices.SortFunc(four, inLockOrder)

	execute(t, holder, `BEGIN`)
	execute(t, holder, `SELECT FROM charge_intent WHERE event_id = $1 FOR UPDATE`, four[2].EventID)
	done := make(chan error, 1)
	go func() {
		done <- s.Transact(t.Context(), func(tx domain.Tx) error {
			_, err := tx.Lock(t.Context(), []uuid.UUID{four[3].EventID, four[2].EventID, four[1].EventID, four[0].EventID})
			return err
		})
	}()
	awaitWaiters(t, watcher, 1)
	rows, err := watcher.Query(t.Context(), `SELECT event_id FROM charge_intent FOR UPDATE SKIP LOCKED`)
	require.NoError(t, err)
	var unlocked []uuid.UUID
	for rows.Next() {
		var id uuid.UUID
		require.NoError(t, rows.Scan(&id))
		unlocked = append(unlocked, id)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []uuid.UUID{four[3].EventID}, unlocked, "those before the held one are locked, those behind it are not")
	execute(t, holder, `ROLLBACK`)
	require.NoError(t, <-done)
}

func inLockOrder(a, b domain.Intent) int {
	return cmp.Or(cmp.Compare(a.OrderID, b.OrderID), bytes.Compare(a.EventID[:], b.EventID[:]))
}
