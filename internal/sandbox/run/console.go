package run

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	// barPause and linePause are the pauses between two signs of life, on a terminal and elsewhere.
	barPause  = 200 * time.Millisecond
	linePause = 2 * time.Second
	barWidth  = 8
	// textWidth leaves the bar its place on a terminal of 80 columns: a line that wraps could not be redrawn.
	textWidth = 64
)

// Console is where a run tells how it goes: a bar on a terminal, plain lines elsewhere.
type Console struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
}

// NewConsole returns a console that writes to out.
func NewConsole(out io.Writer, terminal bool) *Console {
	return &Console{out: out, terminal: terminal}
}

// Say prints a line.
func (c *Console) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
	}
	fmt.Fprintf(c.out, format+"\n", args...)
}

// pause is how often show is to be called.
func (c *Console) pause() time.Duration {
	if c.terminal {
		return barPause
	}
	return linePause
}

// show shows how far the work is, of most; 0: it has no end.
func (c *Console) show(done, most int64, text string) {
	if !c.terminal {
		c.Say("%s", text)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == nil {
		if most == 0 {
			most = -1
		}
		c.bar = progressbar.NewOptions64(most, progressbar.OptionSetWriter(c.out), progressbar.OptionSetWidth(barWidth),
			progressbar.OptionThrottle(barPause/2), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionClearOnFinish(),
			// A bar without an end would else redraw itself at all times, from a goroutine that outlives done.
			progressbar.OptionSetSpinnerChangeInterval(0))
	}
	c.bar.Describe(text[:min(len(text), textWidth)])
	_ = c.bar.Set64(done)
}

// done takes the bar away.
func (c *Console) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
		_ = c.bar.Exit()
		c.bar = nil
	}
}
