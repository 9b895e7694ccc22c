// Command benchplot draws the throughput by the provider's latency, from what
// `sandbox bench --write` measured, as SVG. It lives with the tools, so that the
// service's module does not need a plotter.
//
//	benchplot benchmarks.json benchmarks.svg
package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	width  = 18 * vg.Centimeter
	height = 11 * vg.Centimeter
)

// point is the throughput at one latency, in charges per second; see package bench.
type point struct {
	LatencyMS  float64 `json:"latency_ms"`
	Ceiling    float64 `json:"ceiling"`
	Sequential float64 `json:"sequential"`
	Billing    float64 `json:"billing"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: benchplot benchmarks.json benchmarks.svg")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "benchplot: %v\n", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	content, err := os.ReadFile(from) //nolint:gosec // the caller names the file
	if err != nil {
		return fmt.Errorf("read the measurements: %w", err)
	}
	var report struct {
		Points []point `json:"points"`
	}
	if err := json.Unmarshal(content, &report); err != nil {
		return fmt.Errorf("read the measurements %s: %w", from, err)
	}
	if len(report.Points) == 0 {
		fmt.Fprintln(os.Stderr, "benchplot: no latencies were measured, nothing to draw")
		return nil
	}
	p, err := draught(report.Points)
	if err != nil {
		return err
	}
	if err := p.Save(width, height, to); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// draught draws one line for each way, on a logarithmic scale: they are powers of ten apart.
func draught(points []point) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Throughput by the provider's latency"
	p.X.Label.Text = "latency of one charge, ms"
	p.Y.Label.Text = "charges per second"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Tick.Marker = latencies(points)
	p.X.Tick.Label.XAlign = draw.XCenter
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	p.BackgroundColor = color.White // readable in a dark page too
	p.Add(plotter.NewGrid())
	for _, way := range []struct {
		name  string
		of    func(point) float64
		color color.Color
	}{
		{"the client alone (ceiling)", func(p point) float64 { return p.Ceiling }, color.Gray{Y: 130}},
		{"billing", func(p point) float64 { return p.Billing }, color.RGBA{R: 20, G: 90, B: 200, A: 255}},
		{"one event per transaction", func(p point) float64 { return p.Sequential }, color.RGBA{R: 210, G: 80, B: 30, A: 255}},
	} {
		line, dots, err := plotter.NewLinePoints(series(points, way.of))
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", way.name, err)
		}
		line.Color, dots.Color, dots.Shape = way.color, way.color, draw.CircleGlyph{}
		line.Width = vg.Points(1.5)
		p.Add(line, dots)
		p.Legend.Add(way.name, line, dots)
	}
	return p, nil
}

// series puts the points one beside another at equal distances: 0 has no place on a logarithmic axis.
func series(points []point, of func(point) float64) plotter.XYs {
	xys := make(plotter.XYs, len(points))
	for i, p := range points {
		xys[i].X, xys[i].Y = float64(i), of(p)
	}
	return xys
}

// latencies names the points.
func latencies(points []point) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(points))
	for i, p := range points {
		ticks[i] = plot.Tick{Value: float64(i), Label: fmt.Sprintf("%g", p.LatencyMS)}
	}
	return ticks
}
