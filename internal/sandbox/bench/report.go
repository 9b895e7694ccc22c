package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Verdict says whether a figure reaches its goal.
type Verdict string

// Verdicts.
const (
	Reached Verdict = "reached"
	Missed  Verdict = "missed"
	NoGoal  Verdict = ""
)

// Row is a line of the table: one figure in up to three ways.
type Row struct {
	Scenario   string   `json:"scenario"`
	Figure     string   `json:"figure"`
	Digits     int      `json:"-"` // behind the point
	Ceiling    *float64 `json:"ceiling,omitempty"`
	Sequential *float64 `json:"sequential,omitempty"`
	Billing    *float64 `json:"billing,omitempty"`
	// Measured is what is held against the goal, Unit what it is.
	Measured *float64 `json:"measured,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Goal     string   `json:"goal,omitempty"`
	Verdict  Verdict  `json:"verdict,omitempty"`
}

// Point is the throughput at one latency of the provider, in charges per second.
type Point struct {
	LatencyMS  float64 `json:"latency_ms"`
	Ceiling    float64 `json:"ceiling"`
	Sequential float64 `json:"sequential"`
	Billing    float64 `json:"billing"`
}

// Report is what a bench found.
type Report struct {
	Facts   Facts     `json:"facts"`
	Scale   float64   `json:"scale"`
	Rounds  int       `json:"rounds"`
	Seconds float64   `json:"seconds"`
	Rows    []Row     `json:"rows"`
	Notes   []string  `json:"notes"`
	Points  []Point   `json:"points,omitempty"`
	Runs    []Run     `json:"runs"`
	Ceiling []Ceiling `json:"ceilings,omitempty"`
}

// Void returns the runs with wrong sums.
func (r *Report) Void() (void []Run) {
	for i := range r.Runs {
		if r.Runs[i].Void != "" {
			void = append(void, r.Runs[i])
		}
	}
	return void
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// figures are the runs of one scenario and mode.
type figures []Run

// of picks the runs of a scenario and mode.
func (r *Report) of(scenario string, mode Mode) (found figures) {
	for i := range r.Runs {
		if r.Runs[i].Scenario == scenario && r.Runs[i].Mode == mode {
			found = append(found, r.Runs[i])
		}
	}
	return found
}

// median of a figure; nil without runs.
func (f figures) median(of func(*Run) float64) *float64 {
	return f.pick(of, func(n int) int { return n / 2 })
}

// most is the largest of a figure.
func (f figures) most(of func(*Run) float64) *float64 {
	return f.pick(of, func(n int) int { return n - 1 })
}

func (f figures) pick(of func(*Run) float64, which func(n int) int) *float64 {
	if len(f) == 0 {
		return nil
	}
	values := make([]float64, len(f))
	for i := range f {
		values[i] = of(&f[i])
	}
	slices.Sort(values)
	return &values[which(len(values))]
}

// Figures of a run.
func rate(r *Run) float64        { return r.Rate }
func steadily(r *Run) float64    { return r.Steady }
func cpu(r *Run) float64         { return r.CPU }
func memory(r *Run) float64      { return r.Memory }
func inFlight(r *Run) float64    { return float64(r.InFlight) }
func mean(r *Run) float64        { return r.Mean }
func connections(r *Run) float64 { return float64(r.Connections) }
func p50(r *Run) float64         { return r.P50 }
func p99(r *Run) float64         { return r.P99 }

// ratio is a/b; nil where one of them is missing or b is zero.
func ratio(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	q := *a / *b
	return &q
}

// atLeast gives a row a goal from below.
func (r Row) atLeast(goal float64, measured *float64, unit string) Row {
	return r.judge(fmt.Sprintf("≥ %g", goal), measured, unit, func(x float64) bool { return x >= goal })
}

// atMost gives a row a goal from above.
func (r Row) atMost(goal float64, measured *float64, unit string) Row {
	return r.judge(fmt.Sprintf("≤ %g", goal), measured, unit, func(x float64) bool { return x <= goal })
}

func (r Row) judge(goal string, measured *float64, unit string, reached func(float64) bool) Row {
	r.Goal, r.Unit, r.Measured = goal, unit, measured
	switch {
	case measured == nil:
		r.Verdict = NoGoal
	case reached(*measured):
		r.Verdict = Reached
	default:
		r.Verdict = Missed
	}
	return r
}
