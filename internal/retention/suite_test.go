package retention_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
)

// What both modes promise.

func TestWhatIsOlderThanTheRetentionIsForgottenAndNothingYounger(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		w.turn()
		old, young := w.processed(noon.Add(time.Hour), 20), w.processed(noon.Add(14*time.Hour), 20) // the next day
		stranger := uuid.New()
		w.rows(noon, stranger)

		w.clock.add(keepFor - time.Second)
		report := w.turn()
		require.Zero(t, report.Emptied+int(report.Deleted))
		require.Equal(t, 41, w.count(`SELECT count(*) FROM processed_event`), "each is remembered for as long as it is to be")
		w.execute(`ANALYZE processed_event`) // the report tells of ranges what the statistics say
		w.clock.add(13 * time.Hour)          // past the end of the first day and the retention
		report = w.turn()
		require.Zero(t, w.knows(old...))
		require.Zero(t, w.knows(stranger), "nor is an id of no range")
		require.Equal(t, 20, w.knows(young...))
		require.EqualValues(t, 21, report.Removed+report.Deleted)

		w.clock.add(day)
		w.turn()
		require.Zero(t, w.knows(young...))
		require.Zero(t, w.count(`SELECT count(*) FROM processed_event`))
	})
}

func TestNothingIsForgottenThatAnUnfinishedIntentMayAskFor(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		for _, state := range []domain.IntentState{domain.Waiting, domain.Calling, domain.UnknownOutcome, domain.Answered} {
			t.Run(string(state), func(t *testing.T) {
				t.Parallel()
				w := setup(t, mode)
				w.turn()
				first, stranger := w.processed(noon, 1)[0], uuid.New()
				w.processed(noon.Add(time.Second), 5)
				w.rows(noon, stranger, uuid.New())
				w.intent(first, state)
				w.intent(stranger, state)

				w.clock.add(keepFor + day)
				report := w.turn()
				require.Equal(t, 2, w.knows(first, stranger))
				require.Equal(t, noon.Add(keepFor).Truncate(day), report.BlockedSince.Truncate(day))
				why := report.Default.Why
				if mode == domain.RetainByPartition {
					require.Contains(t, why, "rows of 1 unfinished intents stay")
					require.Contains(t, why, stranger.String())
					of := rangeOf(t, &report, noon)
					require.Equal(t, domain.RangeBlocked, of.State)
					require.Equal(t, "1 unfinished intents, the first of event "+first.String(), of.Why)
					require.Equal(t, 6+1, w.count(`SELECT count(*) FROM processed_event`), "the whole range stays, and of the others the very row")
				} else {
					require.Contains(t, why, "rows of 2 unfinished intents stay")
					require.Equal(t, 2, w.count(`SELECT count(*) FROM processed_event`), "the very rows stay")
				}

				w.execute(`DELETE FROM charge_intent`)
				require.Zero(t, w.turn().BlockedSince)
				require.Zero(t, w.count(`SELECT count(*) FROM processed_event`))
			})
		}
	})
}

func TestDeadLettersKeepNothing(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		w.turn()
		ids := append(w.processed(noon, 2), uuid.New())
		w.rows(noon, ids[2])
		w.intent(ids[0], domain.Parked)
		w.intent(ids[1], domain.Held)
		w.intent(ids[2], domain.Held)
		w.clock.add(keepFor + day)
		require.Zero(t, w.turn().BlockedSince)
		require.Zero(t, w.knows(ids...))
	})
}

func TestNothingIsForgottenThatAGroupHasStillToRead(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		w.turn()
		w.processed(noon, 5)
		w.rows(noon, uuid.New())
		w.reader.say(noon.Add(time.Hour), nil)
		w.clock.add(keepFor + day)
		report := w.turn()
		require.Equal(t, 6, w.count(`SELECT count(*) FROM processed_event`))
		require.False(t, report.BlockedSince.IsZero())
		why := report.Default.Why
		require.Contains(t, why, "nothing is deleted: ")
		if mode == domain.RetainByPartition {
			require.Equal(t, domain.RangeBlocked, rangeOf(t, &report, noon).State)
			why = rangeOf(t, &report, noon).Why
		}
		require.Contains(t, why, "group billing-test has not consumed 17 records or more of orders.confirmed/3")
		require.Contains(t, why, "nor of 1 more partitions")

		w.reader.say(time.Time{}, errAway)
		report = w.turn()
		require.Equal(t, 6, w.count(`SELECT count(*) FROM processed_event`), "nor where that is not known")
		require.Contains(t, report.Default.Why, "not known")
		require.Contains(t, report.Default.Why, errAway.Error())

		w.reader.say(time.Time{}, nil)
		w.turn()
		require.Zero(t, w.count(`SELECT count(*) FROM processed_event`))
	})
}

func TestADryRunTellsWhatATurnWouldDoAndChangesNothing(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		catalog := func() string {
			var text string
			require.NoError(t, w.conn.QueryRow(t.Context(), `SELECT string_agg(c::text, '; ' ORDER BY c::text)
				FROM (SELECT oid, relname, relfilenode FROM pg_class WHERE relname LIKE 'processed_event%') AS c`).Scan(&text))
			return text
		}
		was := catalog()
		report, err := w.keeper.Once(t.Context(), retention.ByHand{Dry: true}, patience)
		require.NoError(t, err)
		require.True(t, report.DryRun)
		require.Equal(t, was, catalog())
		require.Equal(t, map[domain.RetentionMode]int{domain.RetainByPartition: 11, domain.RetainByDelete: 0}[mode], report.Attached)

		w.turn()
		w.processed(noon, 5)
		w.rows(noon, uuid.New())
		w.execute(`ANALYZE processed_event`)
		w.clock.add(keepFor + day)
		was = catalog()
		report, err = w.keeper.Once(t.Context(), retention.ByHand{Dry: true}, patience)
		require.NoError(t, err)
		require.Equal(t, was, catalog())
		require.Equal(t, 6, w.count(`SELECT count(*) FROM processed_event`))
		require.EqualValues(t, 6, report.Removed+report.Deleted, "it tells them all")
		last, _, err := w.store.Retention(t.Context())
		require.NoError(t, err)
		require.False(t, last.DryRun, "it is not what the pages show")
		done := w.turn()
		require.Equal(t, report.Removed+report.Deleted, done.Removed+done.Deleted, "and so it is")
	})
}

func TestRangesOfAnEarlierModeAreDrainedAndDropped(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	require.Equal(t, 11, w.turn().Attached)
	w.processed(noon, 5)
	_, w.keeper = w.another(domain.RetainByDelete)
	late := w.processed(noon, 1)[0]
	w.execute(`UPDATE processed_event SET processed_at = $1 WHERE event_id = $2`, noon.Add(keepFor), late)

	w.clock.add(keepFor + day)
	report := w.turn()
	require.EqualValues(t, 5, report.Deleted)
	require.Equal(t, 1, w.knows(late), "a row that was written late stays for as long as any")
	require.Equal(t, 3, report.Dropped, "those that are empty and past")
	require.Equal(t, domain.RangeDue, rangeOf(t, &report, noon).State)
	w.clock.add(keepFor)
	report = w.turn()
	require.EqualValues(t, 1, report.Deleted)
	require.Equal(t, domain.RangeDropped, rangeOf(t, &report, noon).State)
	w.clock.add(20 * day)
	w.turn()
	require.Equal(t, 1, w.count(`SELECT count(*) FROM pg_inherits WHERE inhparent = 'processed_event'::regclass`), "the default partition is left")
}

func TestTheReportNamesTheRangesAndTheNextThatIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	report := w.turn()
	require.Equal(t, map[domain.RangeState]int{domain.RangeAhead: 7, domain.RangeCurrent: 1, domain.RangeKept: 3}, states(&report))
	first := noon.Add(-keepFor).Truncate(day)
	require.Equal(t, &domain.RetentionNext{Span: domain.Span{From: first, To: first.Add(day)}, At: first.Add(day + keepFor)}, report.Next)
	for i := range report.Ranges {
		r := &report.Ranges[i]
		require.Equal(t, first.Add(time.Duration(i)*day), r.From)
		require.Equal(t, "processed_event_"+r.From.Format("20060102")+"_"+r.To.Format("20060102"), r.Table)
		require.Positive(t, r.Bytes, "its indexes have a page each")
	}
	saved, some, err := w.store.Retention(t.Context())
	require.NoError(t, err)
	require.True(t, some)
	report.SucceededAt = report.FinishedAt
	require.Equal(t, report, saved)
}

// In delete mode as in the other one: the range that is blocked says so, and by what, and what
// lies elsewhere speaks for itself.
func TestByDeletesEachRangeSaysWhatKeepsItsRows(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	w.turn()
	next := noon.Add(day)
	first, second, stranger := w.processed(noon, 2)[0], w.processed(next, 2), uuid.New()
	w.rows(noon, stranger, uuid.New())
	w.intent(first, domain.UnknownOutcome)
	_, w.keeper = w.another(domain.RetainByDelete)

	w.clock.add(keepFor + 2*day)
	report := w.turn()
	require.Equal(t, 1, w.count(`SELECT count(*) FROM processed_event`))
	require.Equal(t, 1, w.knows(first))
	of := rangeOf(t, &report, noon)
	require.Equal(t, domain.RangeBlocked, of.State)
	require.Equal(t, "rows of 1 unfinished intents stay, the first of event "+first.String(), of.Why)
	require.Equal(t, domain.RangeDropped, rangeOf(t, &report, next).State)
	require.False(t, report.Default.Blocked, "what is in no range has gone")
	require.Empty(t, report.Default.Why)
	require.Equal(t, noon.Add(keepFor), report.BlockedSince)
	require.Zero(t, w.knows(second...))

	// Two reasons at a time, and of the default partition as well.
	w.processed(noon, 1)
	w.rows(noon, stranger)
	w.reader.say(noon.Add(time.Hour), nil)
	report = w.turn()
	of = rangeOf(t, &report, noon)
	require.Equal(t, domain.RangeBlocked, of.State)
	require.Contains(t, of.Why, "rows of 1 unfinished intents stay, the first of event "+first.String()+"; nothing is deleted: group billing-test has not consumed 17 records or more")
	require.True(t, report.Default.Blocked)
	require.NotContains(t, report.Default.Why, "unfinished")
	require.Contains(t, report.Default.Why, "nothing is deleted: group billing-test has not consumed 17 records or more")
	require.Equal(t, 3, w.count(`SELECT count(*) FROM processed_event`))
}
