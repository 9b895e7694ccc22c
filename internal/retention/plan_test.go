package retention

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

const day = 24 * time.Hour

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

func on(text string) time.Time { return at(text + " 00:00:00") }

func ours(from, to string) domain.Leaf {
	return domain.Leaf{Table: from + "_" + to, Span: domain.Span{From: on(from), To: on(to)}, Ours: true}
}

// written lists spans as people would.
func written(spans []domain.Span) (out []string) {
	for _, s := range spans {
		out = append(out, s.From.Format(time.DateOnly)+" to "+s.To.Format(time.DateOnly))
	}
	return out
}

func partitioned(w Width, retention time.Duration) *Config {
	c := DefaultConfig()
	c.Width, c.Retention = w, retention
	return &c
}

func TestTheFirstPlanHoldsTheWindowBehindUsTodayAndSomeTimeAhead(t *testing.T) {
	t.Parallel()
	rest := domain.Leaf{Table: "processed_event_default", Default: true}
	for name, tc := range map[string]struct {
		width     Width
		now       string
		retention time.Duration
		want      []string
	}{
		"days, today's first, then those ahead, then those behind us": {
			Day, "2027-01-01 12:00:00", 2 * day, []string{
				"2027-01-01 to 2027-01-02",
				"2027-01-02 to 2027-01-03", "2027-01-03 to 2027-01-04", "2027-01-04 to 2027-01-05", "2027-01-05 to 2027-01-06",
				"2027-01-06 to 2027-01-07", "2027-01-07 to 2027-01-08", "2027-01-08 to 2027-01-09",
				"2026-12-31 to 2027-01-01", "2026-12-30 to 2026-12-31",
			},
		},
		"at midnight the day before the window is not wanted": {
			Day, "2027-01-01 00:00:00", day, []string{
				"2027-01-01 to 2027-01-02",
				"2027-01-02 to 2027-01-03", "2027-01-03 to 2027-01-04", "2027-01-04 to 2027-01-05", "2027-01-05 to 2027-01-06",
				"2027-01-06 to 2027-01-07", "2027-01-07 to 2027-01-08", "2027-01-08 to 2027-01-09",
				"2026-12-31 to 2027-01-01",
			},
		},
		"weeks begin on Monday": { // 2028-02-27 is a Sunday, 2028 a leap year
			Week, "2028-02-27 23:59:59", 3 * day, []string{
				"2028-02-21 to 2028-02-28",
				"2028-02-28 to 2028-03-06", "2028-03-06 to 2028-03-13", "2028-03-13 to 2028-03-20", "2028-03-20 to 2028-03-27",
			},
		},
		"months begin on the first": {
			Month, "2026-11-30 00:00:00", 31 * day, []string{
				"2026-11-01 to 2026-12-01",
				"2026-12-01 to 2027-01-01", "2027-01-01 to 2027-02-01", "2027-02-01 to 2027-03-01",
				"2026-10-01 to 2026-11-01",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := makePlan([]domain.Leaf{rest}, at(tc.now), partitioned(tc.width, tc.retention))
			require.Equal(t, tc.want, written(p.attach))
			require.Empty(t, p.due)
			require.Equal(t, []domain.Leaf{rest}, p.rest, "what is in no range goes row by row")
		})
	}
}

func TestAnotherWidthFillsWhatTheFirstOneHasLeft(t *testing.T) {
	t.Parallel()
	var days []domain.Leaf
	for d := on("2026-11-28"); d.Before(on("2026-12-08")); d = d.Add(day) {
		days = append(days, domain.Leaf{Span: domain.Span{From: d, To: d.Add(day)}, Ours: true})
	}
	now := at("2026-11-30 12:00:00")
	require.Equal(t, []string{
		"2026-12-08 to 2027-01-01", "2027-01-01 to 2027-02-01", "2027-02-01 to 2027-03-01", "2026-11-01 to 2026-11-28",
	}, written(makePlan(days, now, partitioned(Month, 4*day)).attach), "the month behind us is in part within the window")
	require.Equal(t, []string{
		"2026-12-08 to 2026-12-14", "2026-12-14 to 2026-12-21", "2026-12-21 to 2026-12-28", "2026-12-28 to 2027-01-04",
	}, written(makePlan(days, now, partitioned(Week, 2*day)).attach), "what is wholly older than the window is not attached any more")
	month := []domain.Leaf{ours("2026-11-01", "2026-12-01")}
	require.Equal(t, "2026-12-01 to 2026-12-02", written(makePlan(month, now, partitioned(Day, 4*day)).attach)[0])
}

func TestALeafThatIsNotOursIsLeftAloneAndCleanedRowByRow(t *testing.T) {
	t.Parallel()
	foreign := domain.Leaf{Table: "archive_2026", Span: domain.Span{From: time.UnixMilli(0), To: at("2026-12-02 06:00:00")}}
	now := at("2026-11-30 12:00:00")
	p := makePlan([]domain.Leaf{foreign}, now, partitioned(Day, 2*day))
	require.Equal(t, "2026-12-03 to 2026-12-04", written(p.attach)[0], "a range begins at midnight behind it")
	require.Equal(t, []domain.Leaf{foreign}, p.rest)
	p = makePlan([]domain.Leaf{foreign}, now.Add(1000*day), partitioned(Day, 2*day))
	require.Empty(t, p.due, "however old it is: it may hold anything")
}

func TestByDeletesNoRangeIsAttachedAndThoseThatAreThereAreDrained(t *testing.T) {
	t.Parallel()
	c := partitioned(Day, 2*day)
	c.Mode = domain.RetainByDelete
	old, young := ours("2026-11-27", "2026-11-28"), ours("2026-11-29", "2026-11-30")
	p := makePlan([]domain.Leaf{old, young, {Default: true}}, at("2026-11-30 12:00:00"), c)
	require.Empty(t, p.attach)
	require.Equal(t, []domain.Leaf{old}, p.due, "once it is empty it is dropped")
	require.Equal(t, []domain.Leaf{old, young, {Default: true}}, p.rest)
}

// A year or more of turns at random moments, while retention and width change: the window
// is always held without a hole or an overlap, and nothing is due before its time.
func TestRandomizedTheRangesHaveNoHoleAndNoOverlap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 5))
			now := at("2026-01-01 00:00:00").Add(time.Duration(random.Int64N(int64(4 * 365 * day))))
			c := partitioned(Day, 7*day)
			leaves := []domain.Leaf{{Table: "processed_event_default", Default: true}}
			for range 150 {
				now = now.Add(time.Duration(random.Int64N(int64(5 * day))))
				if random.IntN(20) == 0 {
					c.Width = []Width{Day, Week, Month}[random.IntN(3)]
				}
				if random.IntN(30) == 0 {
					c.Retention = time.Duration(1 + random.Int64N(int64(60*day)))
				}
				leaves = turned(t, leaves, now, c)
				holds(t, leaves, now, c)
			}
		})
	}
}

// turned does what the plan says, and looks at it.
func turned(t *testing.T, leaves []domain.Leaf, now time.Time, c *Config) []domain.Leaf {
	t.Helper()
	p := makePlan(leaves, now, c)
	for _, leaf := range p.due {
		require.True(t, leaf.Ours)
		require.False(t, leaf.Span.To.After(now.Add(-c.Retention)), "its youngest id is older than the retention")
	}
	leaves = slices.DeleteFunc(leaves, func(l domain.Leaf) bool { return slices.Contains(p.due, l) })
	for _, span := range p.attach {
		require.Equal(t, span.From, span.From.Truncate(day))
		require.Equal(t, span.To, span.To.Truncate(day))
		require.True(t, span.To.After(now.Add(-c.Retention)), "what is due at once is not attached")
		leaves = append(leaves, domain.Leaf{Table: written([]domain.Span{span})[0], Span: span, Ours: true})
	}
	return leaves
}

func holds(t *testing.T, leaves []domain.Leaf, now time.Time, c *Config) {
	t.Helper()
	spans := []domain.Span{}
	for _, l := range leaves {
		if !l.Default {
			spans = append(spans, l.Span)
		}
	}
	slices.SortFunc(spans, func(a, b domain.Span) int { return a.From.Compare(b.From) })
	for i := 1; i < len(spans); i++ {
		require.False(t, spans[i-1].Overlaps(spans[i]), "%v", spans)
	}
	covered := now.Add(-c.Retention)
	for _, s := range spans {
		if s.Contains(covered) {
			covered = s.To
		}
	}
	ahead := map[Width]time.Duration{Day: 7 * day, Week: 28 * day, Month: 89 * day}[c.Width]
	require.False(t, covered.Before(now.Add(ahead)), "held from %s on only to %s, of %s", now.Add(-c.Retention), covered, now)
	again := makePlan(leaves, now, c)
	require.Empty(t, again.attach, "a second turn at the same moment finds nothing to do")
	require.Empty(t, again.due)
}

func TestAWidthIsBoundedByTheNumberOfRanges(t *testing.T) {
	t.Parallel()
	require.NoError(t, Day.Validate(1000*day))
	require.ErrorContains(t, Day.Validate(1001*day), "at most 1000")
	require.NoError(t, Month.Validate(10_000*day))
	require.ErrorContains(t, Width("hour").Validate(day), `"hour" is none of [day week month]`)
}
