package store_test

import (
	"crypto/sha256"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

// subjectOf returns a charge's event and order.
func subjectOf(c *domain.Charge) domain.Subject {
	return domain.Subject{EventID: c.EventID, OrderID: c.OrderID}
}

func TestAChargeComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for name, c := range map[string]domain.Charge{
		"captured": aCharge(),
		"declined": aCharge(declined),
		"a duplicate of its order": aCharge(func(c *domain.Charge) {
			c.Status, c.ClaimsOrder, c.ProviderChargeID, c.Attempts = domain.ChargeDuplicateOrder, false, "", 0
		}),
		"discarded, the order free": aCharge(func(c *domain.Charge) { c.Status, c.ClaimsOrder = domain.ChargeDiscarded, false }),
		"discarded, the order kept": aCharge(func(c *domain.Charge) { c.Status = domain.ChargeDiscarded }),
		"at the bounds of its fields": aCharge(func(c *domain.Charge) {
			c.OrderID, c.CustomerID, c.Attempts = math.MaxInt64, math.MaxInt64, math.MaxInt32
			c.Source = domain.Coordinates{Topic: "t", Partition: math.MaxInt32, Offset: math.MaxInt64}
			c.OccurredAt = time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
		}),
		"of the first instant of all": aCharge(func(c *domain.Charge) { c.OccurredAt = time.Time{} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write(t, s, domain.Writes{Charges: []domain.Charge{c}})
			require.Equal(t, c, look(t, s, subjectOf(&c)).Charges[c.EventID])
		})
	}
}

// When it was intended and first sent is for those who ask for its story: the flow
// reads charges without it.
func TestAChargeKnowsWhenItWasIntendedAndFirstSent(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for name, c := range map[string]domain.Charge{
		"both": aCharge(func(c *domain.Charge) {
			c.IntendedAt, c.FirstAttemptAt = epoch.Add(-3*time.Second), epoch.Add(-2*time.Second)
		}),
		"intended, and never sent": aCharge(func(c *domain.Charge) { c.IntendedAt = epoch.Add(-time.Second) }),
		"neither":                  aCharge(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write(t, s, domain.Writes{Charges: []domain.Charge{c}})
			got, known := story(t, s, c.EventID)
			require.True(t, known)
			require.Equal(t, &c, got.Charge)
			c.IntendedAt, c.FirstAttemptAt = time.Time{}, time.Time{}
			require.Equal(t, c, look(t, s, subjectOf(&c)).Charges[c.EventID])
		})
	}
}

// PostgreSQL keeps the fraction digits of a numeric; an amount is read back by
// them, whatever the table of currencies says by then.
func TestMoneyIsStoredExactly(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	for _, amount := range []domain.Money{
		money("10.5", "EUR"), money("0.01", "EUR"), money("100", "JPY"), money("1.5", "KWD"), money("0.001", "KWD"),
		money("1.0001", "CLF"), money("999999999999999.9999", "CLF"), money("999999999999999", "JPY"),
	} {
		c := aCharge(func(c *domain.Charge) { c.Amount = amount })
		write(t, s, domain.Writes{Charges: []domain.Charge{c}})
		require.Equal(t, amount.Decimal(), value[string](t, conn, `SELECT amount::text FROM charge WHERE event_id = $1`, c.EventID))
		require.Equal(t, amount, look(t, s, subjectOf(&c)).Charges[c.EventID].Amount)
	}
}

func TestAChargeInARetiredCurrencyIsStillRead(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	c := aCharge()
	write(t, s, domain.Writes{Charges: []domain.Charge{c}})
	execute(t, storetest.Conn(t, databaseURL), `UPDATE charge SET amount = '19.95', currency = 'DEM'`)
	_, err := domain.ParseCurrency("DEM")
	require.Error(t, err, "Germany's mark is no currency to charge in any more")
	require.Equal(t, "19.95 DEM", look(t, s, subjectOf(&c)).Charges[c.EventID].Amount.String())
}

func TestLookTellsWhatIsFinalAndWhatIsOpen(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	captured, refused := aCharge(), aCharge(declined)
	calling, waiting, parked := aCalling(), aWaiting(), aWaiting(inState(domain.Parked))
	put(t, s, calling, waiting, parked)
	write(t, s, domain.Writes{Charges: []domain.Charge{captured, refused, aCharge()}})

	require.Equal(t, domain.Facts{
		Charges: map[uuid.UUID]domain.Charge{}, Orders: map[int64]domain.Charge{},
		Intents: map[uuid.UUID]*domain.Intent{}, Holders: map[int64]uuid.UUID{},
	}, look(t, s), "about nobody there is nothing to say")

	facts := look(t, s, subjectOf(&captured), subjectOf(&refused),
		domain.Subject{EventID: uuid.New(), OrderID: calling.OrderID},
		domain.Subject{EventID: waiting.EventID, OrderID: waiting.OrderID},
		domain.Subject{EventID: uuid.New(), OrderID: parked.OrderID})
	require.Equal(t, map[uuid.UUID]domain.Charge{captured.EventID: captured, refused.EventID: refused}, facts.Charges)
	require.Equal(t, map[int64]domain.Charge{captured.OrderID: captured}, facts.Orders, "a decline leaves its order free")
	require.Equal(t, map[int64]uuid.UUID{calling.OrderID: calling.EventID, parked.OrderID: parked.EventID}, facts.Holders)
	require.Len(t, facts.Intents, 3)

	want := read(domain.Intent{ // what decides about its event, and no more
		EventID: waiting.EventID, OrderID: waiting.OrderID, Fingerprint: waiting.Fingerprint,
		State: waiting.State, Claimed: waiting.Claimed, Token: waiting.Token, Record: domain.Record{Coordinates: waiting.Record.Coordinates},
	})
	require.Equal(t, &want, facts.Intents[waiting.EventID])
}

func TestFinalIsALookWithoutTheIntents(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	captured, calling := aCharge(), aCalling()
	put(t, s, calling)
	write(t, s, domain.Writes{Charges: []domain.Charge{captured, aCharge()}})
	final := func(subjects ...domain.Subject) (facts domain.Facts) {
		within(t, s, func(tx domain.Tx) (err error) {
			facts, err = tx.Final(t.Context(), subjects)
			return err
		})
		return facts
	}
	nothing := domain.Facts{
		Charges: map[uuid.UUID]domain.Charge{}, Orders: map[int64]domain.Charge{},
		Intents: map[uuid.UUID]*domain.Intent{}, Holders: map[int64]uuid.UUID{},
	}
	require.Equal(t, nothing, final(), "about nobody there is nothing to say")
	require.Equal(t, nothing, final(domain.Subject{EventID: calling.EventID, OrderID: calling.OrderID}))

	facts := final(domain.Subject{EventID: uuid.New(), OrderID: captured.OrderID})
	require.Equal(t, map[uuid.UUID]domain.Charge{captured.EventID: captured}, facts.Charges)
	require.Equal(t, map[int64]domain.Charge{captured.OrderID: captured}, facts.Orders)
	require.Equal(t, facts, final(subjectOf(&captured)))
}

func TestLookFindsTheChargeOfAnotherEventByItsOrder(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	first := aCharge()
	later := aCharge(declined)
	later.OrderID = first.OrderID
	write(t, s, domain.Writes{Charges: []domain.Charge{later, first}})
	facts := look(t, s, domain.Subject{EventID: uuid.New(), OrderID: first.OrderID})
	require.Equal(t, first, facts.Orders[first.OrderID])
	require.NotContains(t, facts.Charges, later.EventID)
}

// Looking again is worth something only if it sees what was committed since the
// transaction began.
func TestLookSeesWhatWasCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	c := aCharge()
	within(t, s, func(tx domain.Tx) error {
		before, err := tx.Look(t.Context(), []domain.Subject{subjectOf(&c)})
		require.NoError(t, err)
		require.Empty(t, before.Charges)
		if err := s.Aside(t.Context(), func(other domain.Tx) error {
			return other.Write(t.Context(), domain.Writes{Charges: []domain.Charge{c}})
		}); err != nil {
			return err
		}
		after, err := tx.Look(t.Context(), []domain.Subject{subjectOf(&c)})
		require.Contains(t, after.Charges, c.EventID)
		return err
	})
}

func TestManyChargesAreWrittenAndLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	charges := make([]domain.Charge, 1200)
	subjects := make([]domain.Subject, len(charges))
	for i := range charges {
		charges[i] = aCharge()
		charges[i].Fingerprint = sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		subjects[i] = subjectOf(&charges[i])
	}
	write(t, s, domain.Writes{Charges: append([]domain.Charge(nil), charges...)})
	facts := look(t, s, subjects...)
	require.Len(t, facts.Orders, len(charges))
	for i := range charges {
		require.Equal(t, charges[i], facts.Charges[charges[i].EventID])
	}
}
