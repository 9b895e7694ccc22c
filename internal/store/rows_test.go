package store_test

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// epoch is the instant around which the rows of these tests are made: whole
// microseconds, as PostgreSQL keeps them.
var epoch = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

// aRecord returns a record of its own at some offset.
func aRecord() domain.Record {
	return domain.Record{
		Coordinates: domain.Coordinates{Topic: "orders.confirmed", Partition: 3, Offset: rand.Int64()},
		Timestamp:   epoch.Add(-time.Second), Key: []byte("42"), Value: []byte(`{"eventId":"…"}`),
	}
}

// aWaiting returns a claimed intent that is waiting, of an order of its own.
func aWaiting(change ...func(*domain.Intent)) domain.Intent {
	id := uuid.Must(uuid.NewV7())
	in := domain.Intent{
		EventID: id, OrderID: 1 + rand.Int64N(1<<60),
		RequestHash: sha256.Sum256([]byte("request")), Fingerprint: sha256.Sum256(id[:]),
		State: domain.Waiting, Claimed: true, DueAt: epoch, CreatedAt: epoch, Group: group, Record: aRecord(),
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// aCalling returns an intent under a fresh lease, its claim not yet committed.
func aCalling(change ...func(*domain.Intent)) domain.Intent {
	return aWaiting(append([]func(*domain.Intent){func(in *domain.Intent) {
		in.State, in.Claimed, in.Token, in.Owner = domain.Calling, false, uuid.New(), "billing-1"
		in.LeaseUntil, in.DueAt = epoch.Add(time.Minute), epoch.Add(time.Minute)
		in.FirstAttemptAt, in.Attempts = epoch, 3
	}}, change...)...)
}

// inState returns a change that brings an intent into a state, and gives it what
// the state asks for.
func inState(state domain.IntentState) func(*domain.Intent) {
	return func(in *domain.Intent) {
		in.State = state
		switch state {
		case domain.Calling:
			in.LeaseUntil = in.DueAt
		case domain.UnknownOutcome, domain.Parked:
			in.MaybeSent, in.FirstAttemptAt = true, epoch
		case domain.Answered:
			in.Answer = &domain.Answer{Kind: domain.Captured, Status: 201, ProviderChargeID: "ch_1", Posts: 1}
		case domain.Waiting, domain.Held:
		}
	}
}

func ofOrder(id int64) func(*domain.Intent) {
	return func(in *domain.Intent) { in.OrderID = id }
}

// aCharge returns a captured charge of an order of its own.
func aCharge(change ...func(*domain.Charge)) domain.Charge {
	id := uuid.Must(uuid.NewV7())
	c := domain.Charge{
		EventID: id, OrderID: 1 + rand.Int64N(1<<60), CustomerID: 7, Amount: money("10.50", "EUR"),
		Status: domain.ChargeCaptured, ClaimsOrder: true, ProviderChargeID: "ch_1", Attempts: 1,
		OccurredAt: epoch.Add(-time.Hour), SettledAt: epoch,
		Fingerprint: sha256.Sum256(id[:]), Source: aRecord().Coordinates,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func declined(c *domain.Charge) {
	c.Status, c.ClaimsOrder, c.ProviderChargeID, c.DeclineCode = domain.ChargeDeclined, false, "", "insufficient_funds"
}

// aLetter returns the open letter of an invalid record.
func aLetter(change ...func(*domain.Letter)) domain.Letter {
	l := domain.Letter{
		Record: aRecord(), Reason: domain.ReasonJSON, Detail: "not JSON", State: domain.LetterOpen, Group: group, At: epoch,
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

func money(decimal, code string) domain.Money {
	m, err := domain.ParseMoney(decimal, code)
	if err != nil {
		panic(err)
	}
	return m
}

// within runs fn in a transaction that must commit.
func within(t testing.TB, book domain.Book, fn func(domain.Tx) error) {
	t.Helper()
	require.NoError(t, book.Transact(t.Context(), fn))
}

// write commits intents and charges.
func write(t testing.TB, book domain.Book, w domain.Writes) {
	t.Helper()
	within(t, book, func(tx domain.Tx) error { return tx.Write(t.Context(), w) })
}

// tryWrite returns how a transaction that writes w ends.
func tryWrite(t *testing.T, book domain.Book, w domain.Writes) error {
	t.Helper()
	return book.Transact(t.Context(), func(tx domain.Tx) error { return tx.Write(t.Context(), w) })
}

// put commits intents in any state: claimed ones as the flow leaves them.
func put(t testing.TB, book domain.Book, intents ...domain.Intent) {
	t.Helper()
	write(t, book, domain.Writes{Insert: append([]domain.Intent(nil), intents...)})
}

// locked returns the intents of the events as they are now.
func locked(t testing.TB, book domain.Book, ids ...uuid.UUID) (intents map[uuid.UUID]*domain.Intent) {
	t.Helper()
	within(t, book, func(tx domain.Tx) (err error) {
		intents, err = tx.Lock(t.Context(), ids)
		return err
	})
	return intents
}

// look returns what the book says about the subjects.
func look(t testing.TB, book domain.Book, subjects ...domain.Subject) (facts domain.Facts) {
	t.Helper()
	within(t, book, func(tx domain.Tx) (err error) {
		facts, err = tx.Look(t.Context(), subjects)
		return err
	})
	return facts
}

// value asks the database for one value.
func value[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, conn.QueryRow(ctx, sql, args...).Scan(&v))
	return v
}

// execute runs a statement by hand.
func execute(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := conn.Exec(ctx, sql, args...)
	require.NoError(t, err)
}

// awaitWaiters returns once n sessions of the database wait for a lock that
// somebody holds.
func awaitWaiters(t testing.TB, conn *pgx.Conn, n int) {
	t.Helper()
	await(t, conn, n, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND cardinality(pg_blocking_pids(pid)) > 0`)
}

// await asks until the count is n.
func await(t testing.TB, conn *pgx.Conn, n int, count string) {
	t.Helper()
	require.Eventually(t, func() bool { return value[int](t, conn, count) == n }, patience, 2*time.Millisecond, count)
}

// read returns the intent as the store gives it out: with what its row says.
func read(in domain.Intent) domain.Intent {
	in.Was = domain.Version{Token: in.Token, State: in.State, Claimed: in.Claimed}
	return in
}

// ends are intents that are to end.
func ends(intents ...domain.Intent) []*domain.Intent {
	out := make([]*domain.Intent, len(intents))
	for i := range intents {
		out[i] = &intents[i]
	}
	return out
}
