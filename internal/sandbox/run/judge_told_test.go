package run

import (
	"math/big"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWhatIsToldIsHeldAgainstTheBook(t *testing.T) {
	t.Parallel()
	idOf := func(n byte) uuid.UUID { return uuid.NewSHA1(event(n), []byte("billing.charge-captured.v1")) }
	for name, c := range map[string]struct {
		spoil func(*Facts)
		fails []string
	}{
		"an outcome that was never told": {func(f *Facts) { delete(f.Outcomes.Events, idOf(1)) }, []string{"outcome events"}},
		"an outcome of no charge":        {func(f *Facts) { f.Outcomes.Events[uuid.New()] = Outcome{} }, []string{"outcome events"}},
		"a record that is no outcome":    {func(f *Facts) { f.Outcomes.Strange++ }, []string{"outcome events"}},
		"an outcome told twice":          {func(f *Facts) { f.Outcomes.Records++ }, nil},
		"a dead letter of no record":     {func(f *Facts) { f.Told.Letters["t/0@1"] = "invalid_json" }, []string{"dead letters told"}},
		"no topic for either":            {func(f *Facts) { f.Outcomes.Events, f.Told.Letters = nil, nil }, nil},
		"an outcome with another amount": {func(f *Facts) {
			o := f.Outcomes.Events[idOf(2)]
			o.Amount = big.NewRat(1, 3)
			f.Outcomes.Events[idOf(2)] = o
		}, []string{"outcome events"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := cleanFacts()
			c.spoil(f)
			require.Equal(t, c.fails, failures(Judge(f)))
		})
	}
	f := cleanFacts()
	f.Book.Letters = []Letter{{EventID: event(9), Reason: "invalid_json", Source: "t/0@7"}}
	require.Contains(t, failures(Judge(f)), "dead letters told")
	f.Told.Letters["t/0@7"] = "invalid_json"
	require.NotContains(t, failures(Judge(f)), "dead letters told")
}

func TestARepeatedOutcomeCountsOnceAndAnotherOneOfItsIDIsStrange(t *testing.T) {
	t.Parallel()
	o := Outcomes{Events: map[uuid.UUID]Outcome{}}
	value := `{"eventId":"0198f3a1-5b6c-5d8e-9f01-23456789abcd","orderId":4,"amount":1.50,"currency":"EUR"}`
	for _, r := range []*kgo.Record{
		{Key: []byte("4"), Value: []byte(value)},
		{Key: []byte("4"), Value: []byte(value)},
		{Key: []byte("5"), Value: []byte(value)},
		{Key: []byte("4"), Value: []byte(value[:71] + `2.50,"currency":"EUR"}`)},
		{Key: []byte("4"), Value: []byte("{")},
	} {
		o.take(r)
	}
	require.EqualValues(t, 5, o.Records)
	require.Len(t, o.Events, 1)
	require.EqualValues(t, 3, o.Strange)
}
