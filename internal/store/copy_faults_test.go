package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// copying are the sessions that wait for a lock in the midst of a COPY.
const copying = `FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active' AND query LIKE 'copy %'`

func awaitCopying(t *testing.T, databaseURL string, n int) {
	t.Helper()
	conn := storetest.Conn(t, databaseURL)
	require.Eventually(t, func() bool { return n == value[int](t, conn, `SELECT count(*) `+copying) }, patience, 5*time.Millisecond)
}

// held runs fn while a rival's charge and intent are written and not committed, and takes them back.
func held(t *testing.T, databaseURL string, charge domain.Charge, intent domain.Intent, fn func()) {
	t.Helper()
	c := storetest.Config(databaseURL)
	c.IdleTimeout = time.Minute
	err := open(t, c).Transact(t.Context(), func(tx domain.Tx) error {
		if err := tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{intent}, Charges: []domain.Charge{charge}}); err != nil {
			return err
		}
		fn()
		return errTakenBack
	})
	require.ErrorIs(t, err, errTakenBack)
}

var errTakenBack = errors.New("taken back")

func TestWhateverEndsACopyNothingOfItStandsAndThePoolGoesOn(t *testing.T) {
	t.Parallel()
	type fault struct {
		happen func(t *testing.T, databaseURL string, cancel context.CancelFunc)
		told   func(error) bool
	}
	contextEnds := fault{
		happen: func(t *testing.T, databaseURL string, cancel context.CancelFunc) {
			t.Helper()
			awaitCopying(t, databaseURL, 1)
			cancel()
		},
		told: func(err error) bool { return errors.Is(err, context.Canceled) },
	}
	sessionDies := fault{
		happen: func(t *testing.T, databaseURL string, _ context.CancelFunc) {
			t.Helper()
			awaitCopying(t, databaseURL, 1)
			execute(t, storetest.Conn(t, databaseURL), `SELECT pg_terminate_backend(pid) `+copying)
		},
		told: func(err error) bool { return stateOf(err) == "57P01" },
	}
	lockIsNotGiven := fault{
		happen: func(*testing.T, string, context.CancelFunc) {},
		told:   func(err error) bool { return stateOf(err) == "55P03" },
	}
	charge, intent := aCharge(), aCalling()
	charges := amongMany([]domain.Charge{charge}, someCharge)
	intents := amongMany([]domain.Intent{aCalling(ofOrder(intent.OrderID))}, someCall)
	record := func(ctx context.Context, s *store.Store) error {
		return s.Transact(ctx, func(tx domain.Tx) error { return tx.Write(ctx, domain.Writes{Charges: charges}) })
	}
	intend := func(ctx context.Context, s *store.Store) error {
		_, err := s.Open(ctx, intents)
		return err
	}
	for name, tc := range map[string]struct {
		fault
		pool, table string
		lockTimeout time.Duration
		copy        func(context.Context, *store.Store) error
	}{
		"the context of charges ends":    {contextEnds, "main", "charge", patience, record},
		"the session of charges dies":    {sessionDies, "main", "charge", patience, record},
		"charges are not given the lock": {lockIsNotGiven, "main", "charge", 200 * time.Millisecond, record},
		"the context of intents ends":    {contextEnds, "side", "charge_intent", patience, intend},
		"the session of intents dies":    {sessionDies, "side", "charge_intent", patience, intend},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databaseURL := storetest.URL(t)
			c := storetest.Config(databaseURL)
			c.MaxTransactions, c.LockTimeout, c.SideLockTimeout, c.SideTimeout = store.SideConns, tc.lockTimeout, tc.lockTimeout, 2*patience
			s := open(t, c)
			held(t, databaseURL, charge, intent, func() {
				for range store.SideConns + 1 { // a pool that a connection is lost to at each would be empty then
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					ended := make(chan error, 1)
					go func() { ended <- tc.copy(ctx, s) }()
					tc.happen(t, databaseURL, cancel)
					err := <-ended
					cancel()
					require.Error(t, err)
					require.True(t, tc.told(err), err)
					require.Eventually(t, func() bool { return s.Pools()[tc.pool].Stats().InUse == 0 }, patience, time.Millisecond)
					awaitCopying(t, databaseURL, 0)
				}
			})
			conn := storetest.Conn(t, databaseURL)
			require.Zero(t, value[int](t, conn, `SELECT count(*) FROM `+tc.table))
			require.NoError(t, tc.copy(t.Context(), s), "run again")
			require.Equal(t, many, value[int](t, conn, `SELECT count(*) FROM `+tc.table))
		})
	}
}

// Each of two batches has written what the other one comes to next.
func TestOfTwoCopiesThatWaitForEachOtherOneIsToldAndTheOtherStands(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	charges := []domain.Charge{aCharge(), aCharge()}
	begun := make(chan struct{}, 2)
	both := make(chan struct{})
	ended := make(chan error, 2)
	for i := range charges {
		go func() {
			ended <- s.Transact(t.Context(), func(tx domain.Tx) error {
				if err := tx.Write(t.Context(), domain.Writes{Charges: charges[i : i+1]}); err != nil {
					return err
				}
				begun <- struct{}{}
				<-both
				return tx.Write(t.Context(), domain.Writes{Charges: amongMany([]domain.Charge{charges[1-i]}, someCharge)})
			})
		}()
	}
	<-begun
	<-begun
	close(both)
	victim, other := <-ended, <-ended
	if victim == nil { // the other one was soon done, then
		victim, other = other, victim
	}
	require.Equal(t, "40P01", stateOf(victim), victim)
	require.NoError(t, other)
	require.Equal(t, many+1, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM charge`))
}

func TestAsManyRowsAsAStatementTakesAndOneMoreOrLessAreAllKept(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	want := 0
	for _, n := range []int{1, store.MinCopied - 1, store.MinCopied, store.MaxRows, store.MaxRows + 1, store.MaxRows + store.MinCopied} {
		charges, intents, messages := make([]domain.Charge, n), make([]domain.Intent, n), make([]domain.Message, n)
		for i := range n {
			charges[i], intents[i], messages[i] = aCharge(), aCalling(), aMessage("{}")
		}
		write(t, s, domain.Writes{Charges: charges})
		require.Len(t, opened(t, s, intents...), n)
		publish(t, s, messages...)
		want += n
		for _, table := range []string{"charge", "charge_intent", "outbox"} {
			require.Equal(t, want, value[int](t, conn, `SELECT count(*) FROM `+table), "%d more in %s", n, table)
		}
	}
}

// A record may be so large that pgx hands it on in many pieces.
func TestLargeRecordsAmongManyAreKeptWhole(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	const batch, large = 256, 100 << 10
	var all []domain.Intent
	for i := range batch {
		all = append(all, aCalling(func(in *domain.Intent) {
			if i%32 == 0 {
				in.Record.Value = append(make([]byte, large-1), byte(i))
			}
		}))
	}
	require.Len(t, opened(t, s, all...), batch)
	conn := storetest.Conn(t, databaseURL)
	require.Equal(t, batch/32, value[int](t, conn, `SELECT count(*) FROM charge_intent WHERE length(record) = $1`, large))
	for i := 0; i < batch; i += 32 {
		got := value[[]byte](t, conn, `SELECT record FROM charge_intent WHERE event_id = $1`, all[i].EventID)
		require.Equal(t, all[i].Record.Value, got)
	}
}

// A server that was restarted has left every connection stale. What each takes to notice is a transaction at most.
func TestAfterARestartTheFirstTransactionsCostNoMoreThanTheStaleConnections(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	c := storetest.Config(databaseURL)
	s := open(t, c)
	for range 2 { // a connection that is used again for the first time is asked whether it still stands
		everyConnection(t, s, c.MaxTransactions)
	}
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `SELECT pg_terminate_backend(pid) `+ofMain)
	require.Eventually(t, func() bool { return !value[bool](t, conn, `SELECT EXISTS (SELECT `+ofMain+`)`) }, patience, time.Millisecond)
	lost := 0
	for tryWrite(t, s, domain.Writes{Charges: amongMany(nil, someCharge)}) != nil {
		lost++
		require.LessOrEqual(t, lost, c.MaxTransactions)
	}
	require.Equal(t, many, value[int](t, conn, `SELECT count(*) FROM charge`))
}

// ofMain are the sessions of the main pool.
const ofMain = `FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'billing'`

// everyConnection has a transaction open on each connection of the main pool at a time.
func everyConnection(t *testing.T, s *store.Store, conns int) {
	t.Helper()
	ended, begun, all := make(chan error, conns), make(chan struct{}, conns), make(chan struct{})
	for range conns {
		go func() {
			ended <- s.Transact(t.Context(), func(tx domain.Tx) error {
				_, err := tx.Lock(t.Context(), []uuid.UUID{uuid.New()})
				begun <- struct{}{}
				<-all
				return err
			})
		}()
	}
	for range conns {
		<-begun
	}
	close(all)
	for range conns {
		require.NoError(t, <-ended)
	}
}
