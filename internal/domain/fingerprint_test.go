package domain_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// The fingerprints of events seen by an older version are compared with those
// of this one. Should this test fail, do not change the value: raise the version
// byte and keep reading the old form.
func TestFingerprintIsTheSameAfterEveryDeploy(t *testing.T) {
	t.Parallel()
	event := fingerprinted(t, func(*domain.Event) {})
	fingerprint := event.Fingerprint()
	require.Equal(t, "22ad32ad073d2923d995af6b951364b15f744d9141e9d30aeeec2b7d9942a2bf", hex.EncodeToString(fingerprint[:]))
}

func TestFingerprintTellsMeaningsApart(t *testing.T) {
	t.Parallel()
	base := fingerprinted(t, func(*domain.Event) {})
	seen := map[domain.Fingerprint]string{base.Fingerprint(): "the base event"}
	for name, change := range map[string]func(*domain.Event){
		"another order":    func(e *domain.Event) { e.OrderID++ },
		"another customer": func(e *domain.Event) { e.CustomerID++ },
		"ids swapped":      func(e *domain.Event) { e.OrderID, e.CustomerID = e.CustomerID, e.OrderID },
		"a cent more":      func(e *domain.Event) { e.Total = money(t, 1051, "EUR") },
		"another currency": func(e *domain.Event) { e.Total = money(t, 1050, "USD") },
		"a second later":   func(e *domain.Event) { e.OccurredAt = e.OccurredAt.Add(time.Second) },
		"a nanosecond on":  func(e *domain.Event) { e.OccurredAt = e.OccurredAt.Add(1) },
		"before 1970":      func(e *domain.Event) { e.OccurredAt = time.Unix(-1, 0) },
	} {
		event := fingerprinted(t, change)
		twin, known := seen[event.Fingerprint()]
		require.False(t, known, "%s has the fingerprint of %s", name, twin)
		seen[event.Fingerprint()] = name
	}
}

func TestFingerprintIgnoresWhatIsNoMeaning(t *testing.T) {
	t.Parallel()
	base := fingerprinted(t, func(*domain.Event) {})
	for name, change := range map[string]func(*domain.Event){
		"the event id":  func(e *domain.Event) { e.ID[0]++ },
		"the trace":     func(e *domain.Event) { e.TraceParent, e.TraceState = "a", "b" },
		"the time zone": func(e *domain.Event) { e.OccurredAt = e.OccurredAt.In(time.FixedZone("", 7200)) },
	} {
		event := fingerprinted(t, change)
		require.Equal(t, base.Fingerprint(), event.Fingerprint(), name)
	}
}

func fingerprinted(t *testing.T, change func(*domain.Event)) domain.Event {
	t.Helper()
	event := domain.Event{
		OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
		OrderID:    42,
		CustomerID: 7,
		Total:      money(t, 1050, "EUR"),
	}
	change(&event)
	return event
}

func money(t *testing.T, minor uint64, code string) domain.Money {
	t.Helper()
	amount, err := domain.NewMoney(minor, code)
	require.NoError(t, err)
	return amount
}
