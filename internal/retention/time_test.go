package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
)

// What is forgotten is forgotten for all instances: one whose clock is ahead must not
// decide what is due.
func TestAClockThatIsAheadForgetsNothingTooEarly(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		w.turn()
		known := w.processed(noon, 3)
		fast := &clock{now: noon.Add(keepFor + 2*day)}
		var seen time.Time
		_, ahead := w.another(mode, func(_ *retention.Config, p *retention.Parts) {
			p.Clock = fast
			p.Chores = []retention.Chore{told{func(now time.Time) { seen = now }}}
		})
		report, err := ahead.Once(t.Context(), retention.ByHand{}, patience)
		require.ErrorContains(t, err, "differ by 120h0m0s")
		require.Equal(t, len(known), w.knows(known...))
		require.Equal(t, noon, seen, "nor do others forget by it")
		require.Equal(t, noon, report.StartedAt)
		require.Equal(t, noon, report.FinishedAt, "so that the others know how long ago it was")

		w.clock.add(keepFor + 2*day - time.Minute) // the database's
		report, err = ahead.Once(t.Context(), retention.ByHand{}, patience)
		require.NoError(t, err, "a minute is nothing to speak of")
		require.Zero(t, w.knows(known...))
		require.Empty(t, report.Error)
	})
}

func TestAClockThatIsBehindForgetsLater(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		w.turn()
		known := w.processed(noon, 3)
		_, behind := w.another(mode, func(_ *retention.Config, p *retention.Parts) { p.Clock = &clock{now: noon} })
		w.clock.add(keepFor + 2*day)
		_, err := behind.Once(t.Context(), retention.ByHand{}, patience)
		require.ErrorContains(t, err, "differ by 120h0m0s")
		require.Equal(t, len(known), w.knows(known...))
		w.turn()
		require.Zero(t, w.knows(known...))
	})
}

// told is a chore that is told the time.
type told struct{ of func(time.Time) }

func (told) Name() string { return "told" }

func (c told) Run(_ context.Context, now time.Time) (int64, error) {
	c.of(now)
	return 0, nil
}

// A constraint of an instance that ended while it attached a range refuses every claim of
// its days; no turn may leave it, whatever the mode is by now.
func TestATurnThatWasBrokenOffKeepsNoClaimFromItsDay(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		from, to := domain.Span{From: noon.Truncate(day), To: noon.Truncate(day).Add(day)}.Bounds()
		w.execute(`ALTER TABLE processed_event_default ADD CONSTRAINT processed_not_20261130_20261201
			CHECK (event_id < '` + from.String() + `' OR event_id >= '` + to.String() + `')`)
		dry, err := w.keeper.Once(t.Context(), retention.ByHand{Dry: true}, patience)
		require.NoError(t, err)
		require.Empty(t, dry.Error)
		left := `SELECT count(*) FROM pg_constraint WHERE conname LIKE 'processed\_not%'
			AND to_regclass(replace(conname, '_not_', '_event_')) IS NULL`
		require.Equal(t, 1, w.count(left), "a dry run changes nothing")
		w.turn()
		require.Zero(t, w.count(left))
		require.Equal(t, 3, w.knows(w.processed(noon, 3)...))
	})
}

func TestRowByRowARetentionOfManyYearsTakesNoRanges(t *testing.T) {
	t.Parallel()
	c := retention.DefaultConfig()
	c.Retention = 10 * 365 * day
	require.ErrorContains(t, c.Validate(), "takes 3650 ranges")
	c.Mode = domain.RetainByDelete
	require.NoError(t, c.Validate())
	c.Width = "hour"
	require.ErrorContains(t, c.Validate(), `"hour" is none of`)
}
