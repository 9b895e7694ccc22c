package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// benchBatch is the size of a full batch.
const benchBatch = 256

// perRecord reports the records a second and the time of one.
func perRecord(b *testing.B, records int) {
	b.Helper()
	b.ReportMetric(float64(b.N*records)/b.Elapsed().Seconds(), "records/s")
}

// A full batch of which a tenth is known: the insert, the reading back, and the
// search for the first sightings, all committed.
func BenchmarkClaimWithATenthDuplicates(b *testing.B) {
	s, _ := storetest.Open(b)
	known := sightings(benchBatch / 10)
	require.NoError(b, s.Transact(b.Context(), func(tx domain.Tx) error {
		_, err := tx.Claim(b.Context(), group, known)
		return err
	}))
	for b.Loop() {
		b.StopTimer()
		batch := append(sightings(benchBatch-len(known)), known...)
		slices.SortFunc(batch, func(x, y domain.Sighting) int { return slices.Compare(x.EventID[:], y.EventID[:]) })
		b.StartTimer()
		err := s.Transact(b.Context(), func(tx domain.Tx) error {
			claimed, err := tx.Claim(b.Context(), group, batch)
			require.Len(b, claimed.Earlier, len(known))
			return err
		})
		require.NoError(b, err)
	}
	perRecord(b, benchBatch)
}

// A look at a batch's events and orders among 20,000 charges, of which a tenth is
// theirs, and their open intents.
func BenchmarkLook(b *testing.B) {
	s, databaseURL := storetest.Open(b)
	charges := make([]domain.Charge, 20_000)
	for i := range charges {
		charges[i] = aCharge()
	}
	write(b, s, domain.Writes{Charges: charges})
	intents := make([]domain.Intent, benchBatch)
	subjects := make([]domain.Subject, benchBatch)
	for i := range intents {
		intents[i] = aCalling()
		subjects[i] = domain.Subject{EventID: intents[i].EventID, OrderID: intents[i].OrderID}
		if i%10 == 0 {
			subjects[i] = subjectOf(&charges[i*7])
		}
	}
	_, err := s.Open(b.Context(), intents)
	require.NoError(b, err)
	execute(b, storetest.Conn(b, databaseURL), `ANALYZE`)
	b.ResetTimer()
	for b.Loop() {
		require.Len(b, look(b, s, subjects...).Charges, (benchBatch+9)/10)
	}
	perRecord(b, benchBatch)
}

// The intents of a full batch, committed aside.
func BenchmarkOpen(b *testing.B) {
	s, _ := storetest.Open(b)
	for b.Loop() {
		b.StopTimer()
		intents := make([]domain.Intent, benchBatch)
		for i := range intents {
			intents[i] = aCalling()
		}
		b.StartTimer()
		in, err := s.Open(b.Context(), intents)
		require.NoError(b, err)
		require.Len(b, in, benchBatch)
	}
	perRecord(b, benchBatch)
}

// captor takes the money at once: what is measured is everything around it.
type captor struct{}

func (captor) Charge(context.Context, domain.ChargeRequest) domain.Answer {
	return domain.Answer{Kind: domain.Captured, Status: 201, ProviderChargeID: "ch_1", Posts: 1}
}

// A full batch from claim to commit, its events all fresh, and what telling of them adds.
func BenchmarkBill(b *testing.B) {
	b.Run("silent", func(b *testing.B) { benchmarkBill(b, false) })
	b.Run("telling", func(b *testing.B) { benchmarkBill(b, true) })
}

func benchmarkBill(b *testing.B, telling bool) {
	b.Helper()
	s, _ := storetest.Open(b)
	biller := newBiller(s, telling)
	var offset int64
	for b.Loop() {
		b.StopTimer()
		records := make([]domain.Record, benchBatch)
		for i := range records {
			offset++
			records[i] = orderRecord(offset)
		}
		b.StartTimer()
		require.NoError(b, biller.Bill(b.Context(), domain.Pass{}, records))
	}
	perRecord(b, benchBatch)
	require.Equal(b, offset, total(b, s).Captured, "every one was charged")
}

func newBiller(s *store.Store, telling bool) *domain.Biller {
	return domain.NewBiller(domain.Policy{
		Group: group, Owner: "bench", ChargeBudget: 12 * time.Second, CommitMargin: 5 * time.Second, LockTimeout: 15 * time.Second,
		Lease: time.Minute, QuickAttempts: 3, MaxInFlight: 1024, RetryHorizon: 20 * time.Hour, KeyTTL: 24 * time.Hour,
		PublishEvents: telling, PublishLetters: telling,
	}, domain.Decoder{}, s, captor{}, domain.NewGate(domain.SystemClock{}), domain.SystemClock{}, slog.New(slog.DiscardHandler))
}

// orderRecord returns the record of a fresh event, its order numbered by the offset.
func orderRecord(offset int64) domain.Record {
	return domain.Record{
		Coordinates: domain.Coordinates{Topic: "orders.confirmed", Partition: 3, Offset: offset}, Timestamp: epoch, Key: fmt.Append(nil, offset),
		Value: fmt.Appendf(nil, `{"eventId":%q,"eventType":"order.confirmed.v1","occurredAt":"2026-03-14T15:09:26Z",`+
			`"aggregateType":"Order","orderId":%d,"customerId":7,"totalAmount":10.50,"currency":"EUR"}`, uuid.Must(uuid.NewV7()), offset),
	}
}

// and one of nothing else.
func BenchmarkBillDuplicates(b *testing.B) {
	b.Run("a tenth", func(b *testing.B) { benchmarkDuplicates(b, benchBatch/10) })
	b.Run("all", func(b *testing.B) { benchmarkDuplicates(b, benchBatch) })
}

func benchmarkDuplicates(b *testing.B, known int) {
	b.Helper()
	s, _ := storetest.Open(b)
	biller := newBiller(s, false)
	seen := make([]domain.Record, known)
	for i := range seen {
		seen[i] = orderRecord(int64(i + 1))
	}
	require.NoError(b, biller.Bill(b.Context(), domain.Pass{}, seen))
	offset := int64(known)
	for b.Loop() {
		b.StopTimer()
		records := make([]domain.Record, benchBatch)
		for i := range records {
			offset++
			if records[i] = orderRecord(offset); i < known {
				records[i].Key, records[i].Value = seen[i].Key, seen[i].Value
			}
		}
		b.StartTimer()
		require.NoError(b, biller.Bill(b.Context(), domain.Pass{}, records))
	}
	perRecord(b, benchBatch)
	require.Equal(b, offset-int64(known), total(b, s).Received-int64(known))
}
