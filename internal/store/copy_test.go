package store_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// many is above the number of rows from which they are copied.
const many = 3 * store.MinCopied

// amongMany returns n rows: those given, and others.
func amongMany[T any](given []T, other func() T) []T {
	rows := slices.Clone(given)
	for len(rows) < many {
		rows = append(rows, other())
	}
	return rows
}

func someCharge() domain.Charge { return aCharge() }
func someCall() domain.Intent   { return aCalling() }

// How many come with it must not change what is kept of a charge.
func TestAChargeAmongManyIsKeptAsOneAlone(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	given := []domain.Charge{
		aCharge(declined),
		aCharge(func(c *domain.Charge) { c.Status, c.ClaimsOrder, c.Attempts = domain.ChargeDiscarded, false, 0 }),
		aCharge(func(c *domain.Charge) {
			c.OrderID, c.CustomerID, c.Attempts = math.MaxInt64, math.MaxInt64, math.MaxInt32
			c.Source = domain.Coordinates{Topic: "t", Partition: math.MaxInt32, Offset: math.MaxInt64}
			c.OccurredAt = time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
		}),
		aCharge(func(c *domain.Charge) {
			c.OccurredAt, c.IntendedAt, c.FirstAttemptAt = time.Time{}, epoch.Add(-time.Second), epoch.Add(-time.Millisecond)
		}),
	}
	for _, amount := range []domain.Money{
		money("10.5", "EUR"), money("0.01", "EUR"), money("100", "JPY"), money("10000", "JPY"), money("0.001", "KWD"),
		money("999999999999999.9999", "CLF"), money("999999999999999", "JPY"),
	} {
		given = append(given, aCharge(func(c *domain.Charge) { c.Amount = amount }))
	}
	write(t, s, domain.Writes{Charges: amongMany(given, someCharge)})
	conn := storetest.Conn(t, databaseURL)
	for i := range given {
		got, known := story(t, s, given[i].EventID)
		require.True(t, known)
		require.Equal(t, &given[i], got.Charge)
		require.Equal(t, given[i].Amount.Decimal(), value[string](t, conn, `SELECT amount::text FROM charge WHERE event_id = $1`, given[i].EventID))
	}
}

func TestAnIntentAmongManyIsKeptAsOneAlone(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	given := []domain.Intent{
		aCalling(full, func(in *domain.Intent) { // all but an answer, which a fresh one cannot have
			in.State, in.Answer, in.LeaseUntil = domain.Calling, nil, in.DueAt
		}),
		aCalling(func(in *domain.Intent) { in.Record.Key, in.Record.Headers = nil, nil }),
		aCalling(func(in *domain.Intent) { in.Record.Key, in.Record.Value = []byte{}, []byte{} }),
		aCalling(func(in *domain.Intent) { in.Record.Timestamp = time.Time{} }),
		aWaiting(),
	}
	all := amongMany(given, someCall)
	require.Len(t, opened(t, s, all...), len(all))
	for _, in := range given {
		want := read(in)
		require.Equal(t, &want, locked(t, s, in.EventID)[in.EventID])
	}
}

func TestAMessageAmongManyIsKeptAsOneAlone(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	want := amongMany([]domain.Message{
		{Kind: domain.LetterMessage},
		{Kind: domain.LetterMessage, Key: []byte{}, Value: []byte{}, Headers: []domain.Header{
			{Key: "a", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "\xff\x00", Value: []byte{0xff, 0}},
		}},
	}, func() domain.Message { return aMessage("{}") })
	publish(t, s, want...)
	got := following(t, leading(t, databaseURL), len(want))
	for i := range want {
		require.Equal(t, want[i], got[i].Message)
	}
}

// One of many is final already, or its order is: the decisions about all of them are taken again.
func TestManyChargesOfWhichOneIsFinalAlreadyStandNotAtAll(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	there := aCharge()
	write(t, s, domain.Writes{Charges: []domain.Charge{there}})
	for _, again := range []domain.Charge{
		aCharge(func(c *domain.Charge) { c.EventID = there.EventID }),
		aCharge(func(c *domain.Charge) { c.OrderID = there.OrderID }),
	} {
		err := tryWrite(t, s, domain.Writes{Charges: amongMany([]domain.Charge{again}, someCharge)})
		require.ErrorIs(t, err, domain.ErrMoved)
		require.NotErrorIs(t, err, domain.ErrData)
	}
	require.Equal(t, 1, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM charge`))
}

// Somebody's claim on one of many orders is not committed yet, and is for longer than a side transaction waits.
func TestOfManyIntentsOnlyTheOneThatMeetsALongLockIsKeptOut(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	busy := aCalling()
	rival := aCalling(ofOrder(busy.OrderID))
	within(t, s, func(tx domain.Tx) error {
		if err := tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{busy}}); err != nil {
			return err
		}
		all := amongMany([]domain.Intent{rival}, someCall)
		require.Len(t, opened(t, s, all...), len(all)-1)
		return nil
	})
	require.Empty(t, locked(t, s, rival.EventID))
}

// A transaction whose context has ended is rolled back behind our back. What is copied then must not stand by itself.
func TestNothingIsCopiedOnceItsTransactionIsOver(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Transact(ctx, func(tx domain.Tx) error {
		cancel()
		require.Eventually(t, func() bool {
			_, err := tx.Lock(t.Context(), []uuid.UUID{uuid.New()})
			return errors.Is(err, sql.ErrTxDone)
		}, patience, time.Millisecond)
		require.Error(t, tx.Write(t.Context(), domain.Writes{Charges: amongMany(nil, someCharge)}))
		require.Error(t, tx.Publish(t.Context(), amongMany(nil, func() domain.Message { return aMessage("{}") })))
		return nil
	})
	require.ErrorIs(t, err, sql.ErrTxDone)
	conn := storetest.Conn(t, databaseURL)
	require.Zero(t, value[int](t, conn, `SELECT (SELECT count(*) FROM charge) + (SELECT count(*) FROM outbox)`))
}

func TestOnAConnectionWithoutATransactionNothingIsCopied(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn, err := s.Pools()["main"].Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.ErrorIs(t, store.CopyWithin(t.Context(), conn, amongMany(nil, someCharge)), sql.ErrTxDone)
	require.Zero(t, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM charge`))
}

// Two batches that write the same rows in two orders would wait for each other.
func TestFewAndManyRowsGoInInTheOrderOfTheLocks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{5, many} {
		s, databaseURL := storetest.Open(t)
		charges, intents := make([]domain.Charge, n), make([]domain.Intent, n)
		for i := range n {
			charges[i], intents[i] = aCharge(), aCalling()
		}
		slices.Reverse(charges)
		slices.Reverse(intents)
		write(t, s, domain.Writes{Charges: slices.Clone(charges)})
		require.Len(t, opened(t, s, intents...), n)

		conn := storetest.Conn(t, databaseURL)
		const inOrder = `SELECT array_agg(event_id ORDER BY ctid) = array_agg(event_id ORDER BY `
		require.True(t, value[bool](t, conn, inOrder+`event_id) FROM charge`), "%d charges", n)
		require.True(t, value[bool](t, conn, inOrder+`order_id, event_id) FROM charge_intent`), "%d intents", n)
	}
}

func TestARefusedValueAmongManyIsToldAsOne(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	bad := aCalling(func(in *domain.Intent) { in.Owner = "a\x00b" })
	_, err := s.Open(t.Context(), amongMany([]domain.Intent{bad}, someCall))
	require.ErrorIs(t, err, domain.ErrData)

	err = tryWrite(t, s, domain.Writes{Charges: amongMany([]domain.Charge{aCharge(func(c *domain.Charge) {
		c.DeclineCode = "a\x00b"
	})}, someCharge)})
	require.ErrorIs(t, err, domain.ErrData)
}
