package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func TestASeriesBeginsWithAWholeStepAndHasABound(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	elsewhere := time.FixedZone("UTC+5:45", 20700)
	for name, tc := range map[string]struct {
		since time.Time
		step  domain.SeriesStep
		want  time.Time
	}{
		"a minute":             {now.Add(-time.Hour), domain.StepMinute, time.Date(2026, 3, 14, 14, 9, 0, 0, time.UTC)},
		"an hour":              {now.Add(-24 * time.Hour).In(elsewhere), domain.StepHour, time.Date(2026, 3, 13, 15, 0, 0, 0, time.UTC)},
		"a day":                {now.AddDate(0, 0, -30).In(elsewhere), domain.StepDay, time.Date(2026, 2, 12, 0, 0, 0, 0, time.UTC)},
		"too many minutes":     {now.AddDate(0, 0, -30), domain.StepMinute, time.Date(2026, 3, 13, 14, 10, 0, 0, time.UTC)},
		"all hours":            {time.Time{}, domain.StepHour, time.Date(2026, 1, 11, 4, 0, 0, 0, time.UTC)},
		"as many as there are": {now.Add(-1499 * time.Hour), domain.StepHour, time.Date(2026, 1, 11, 4, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := domain.SeriesStart(tc.since, now, tc.step)
			require.Equal(t, tc.want, from)
			require.LessOrEqual(t, int(now.Sub(from)/tc.step.Width())+1, domain.MaxSeriesPoints)
		})
	}
}

func TestStepsHaveNames(t *testing.T) {
	t.Parallel()
	for _, step := range []domain.SeriesStep{domain.StepMinute, domain.StepHour, domain.StepDay} {
		parsed, err := domain.ParseSeriesStep(string(step))
		require.NoError(t, err)
		require.Equal(t, step, parsed)
	}
	_, err := domain.ParseSeriesStep("week")
	require.EqualError(t, err, `step "week": want minute, hour or day`)
}
