package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
)

// keeping is an instance that is to keep for some days.
func (w *world) keeping(name string, days int, mode domain.RetentionMode) *retention.Keeper {
	w.t.Helper()
	_, k := w.another(mode, func(c *retention.Config, _ *retention.Parts) {
		c.Instance, c.Retention = name, time.Duration(days)*day
	})
	return k
}

// leads has an instance lead for one turn, as a service does, and returns its report.
func (w *world) leads(k *retention.Keeper) domain.RetentionReport {
	w.t.Helper()
	before := k.Status().Report.FinishedAt
	w.clock.add(2 * time.Minute) // the next turn is due
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Run(ctx)
	}()
	w.eventually("a turn", func() bool { return k.Status().Report.FinishedAt.After(before) })
	cancel()
	<-ended
	require.Empty(w.t, k.Status().Report.Error)
	return k.Status().Report
}

// days is what an instance kept for, and what it is to keep for where that is held back.
func days(r domain.RetentionReport) [2]int {
	return [2]int{int(r.Retention / day), int(r.Wanted / day)}
}

func TestAServiceThatWouldKeepForShorterGoesOnAsBeforeUntilThatIsConfirmed(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		require.Equal(t, [2]int{3, 0}, days(w.leads(w.keeping("before", 3, mode))))
		older, old := w.processed(noon, 5), w.processed(noon.Add(2*day), 5)
		w.clock.add(4*day + 2*time.Hour) // older than three days are the first of them, older than one day all

		mistyped := w.keeping("mistyped", 1, mode)
		report := w.leads(mistyped)
		require.Equal(t, [2]int{3, 1}, days(report))
		require.Zero(t, w.knows(older...), "what was to be forgotten is")
		require.Equal(t, 5, w.knows(old...), "and nothing else")
		if mode == domain.RetainByPartition {
			require.Equal(t, 4, report.Attached, "the days ahead have their ranges all the same")
			require.Equal(t, domain.RangeKept, rangeOf(t, &report, noon.Add(2*day)).State)
		}
		require.Equal(t, [2]int{3, 1}, days(w.leads(mistyped)), "and so every time")

		_, err := w.keeping("hand", 1, mode).Once(t.Context(), retention.ByHand{}, patience)
		require.ErrorIs(t, err, retention.ErrShorter)
		require.EqualError(t, err, "24h0m0s is shorter than what is kept so far: 72h0m0s")
		dry, err := w.keeping("hand", 1, mode).Once(t.Context(), retention.ByHand{Dry: true, Shorten: true}, patience)
		require.NoError(t, err)
		require.Equal(t, [2]int{1, 0}, days(dry))
		require.Equal(t, [2]int{3, 1}, days(w.leads(mistyped)), "a dry run confirms nothing")
		require.Equal(t, 5, w.knows(old...))

		_, err = w.keeping("hand", 1, mode).Once(t.Context(), retention.ByHand{Shorten: true}, patience)
		require.NoError(t, err)
		require.Zero(t, w.knows(old...))
		require.Equal(t, [2]int{1, 0}, days(w.leads(mistyped)))
		w.clock.add(30 * day)
		require.Equal(t, [2]int{1, 0}, days(w.leads(mistyped)), "it is what is kept from then on")
	})
}

func TestWhatIsConfirmedHoldsThroughARolloutThoughOldInstancesLeadInBetween(t *testing.T) {
	t.Parallel()
	const mode = domain.RetainByPartition
	w := setup(t, mode)
	long, short := w.keeping("long", 7, mode), w.keeping("short", 2, mode)
	w.leads(long)
	_, err := w.keeping("hand", 2, mode).Once(t.Context(), retention.ByHand{Shorten: true}, patience)
	require.NoError(t, err)
	for range 5 {
		w.clock.add(20 * time.Hour)
		require.Equal(t, [2]int{7, 0}, days(w.leads(long)))
		require.Equal(t, [2]int{2, 0}, days(w.leads(short)))
	}
	w.clock.add(25 * time.Hour)
	require.Equal(t, [2]int{7, 0}, days(w.leads(long)), "for more than a day nobody has kept for shorter")
	require.Equal(t, [2]int{7, 2}, days(w.leads(short)))
}

func TestToKeepForLongerNeedsNoConfirmationAndCanBeTakenBackForADay(t *testing.T) {
	t.Parallel()
	const mode = domain.RetainByPartition
	w := setup(t, mode)
	before, after := w.keeping("before", 2, mode), w.keeping("after", 5, mode)
	w.leads(before)
	require.Equal(t, [2]int{5, 0}, days(w.leads(after)))
	w.clock.add(23 * time.Hour)
	require.Equal(t, [2]int{5, 0}, days(w.leads(after)))
	require.Equal(t, [2]int{2, 0}, days(w.leads(before)), "the rollout is taken back")
	w.clock.add(25 * time.Hour)
	require.Equal(t, [2]int{5, 0}, days(w.leads(after)))
	require.Equal(t, [2]int{5, 2}, days(w.leads(before)))
}

func TestATurnByHandThatKeepsForLongerHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	const mode = domain.RetainByPartition
	w := setup(t, mode)
	service, hand := w.keeping("service", 1, mode), w.keeping("hand", 7, mode)
	w.leads(service)
	for range 2 {
		w.clock.add(25 * time.Hour)
		report, err := hand.Once(t.Context(), retention.ByHand{Shorten: true}, patience)
		require.NoError(t, err)
		require.Equal(t, [2]int{7, 0}, days(report))
	}
	require.Equal(t, [2]int{1, 0}, days(w.leads(service)))
}

// A report of before there was a floor says only for how long was kept.
func TestAReportWithoutAFloorCountsByWhatItKept(t *testing.T) {
	t.Parallel()
	const mode = domain.RetainByPartition
	w := setup(t, mode)
	w.leads(w.keeping("before", 3, mode))
	w.execute(`UPDATE retention_turn SET report = report - 'floor' - 'floor_at'`)
	require.Equal(t, [2]int{3, 1}, days(w.leads(w.keeping("after", 1, mode))))
}

func TestWhereItIsNotKnownWhatWasKeptNothingIsForgotten(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		w.turn()
		old := w.processed(noon, 5)
		w.clock.add(30 * day)
		w.execute(`UPDATE retention_turn SET report = '{"retention": "long"}'`)
		_, err := w.keeper.Once(t.Context(), retention.ByHand{Shorten: true}, patience)
		require.ErrorContains(t, err, "decode retention_turn")
		require.Equal(t, 5, w.knows(old...))
		require.Equal(t, 1, w.count(`SELECT count(*) FROM retention_turn WHERE report->>'retention' = 'long'`), "nor is it written over")
	})
}

// Where rows are deleted one by one any length will do; as many ranges of a day would be thousands.
func TestWhatIsKeptForLongerThanWantedTakesNoMoreRangesThanAreWanted(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByDelete)
	w.leads(w.keeping("before", 2000, domain.RetainByDelete))
	old := w.processed(noon.Add(-10*day), 5)
	report := w.leads(w.keeping("after", 3, domain.RetainByPartition))
	require.Equal(t, [2]int{2000, 3}, days(report))
	require.Equal(t, 1+7+3, report.Attached, "today, ahead and behind")
	require.Equal(t, 5, w.knows(old...))
}
