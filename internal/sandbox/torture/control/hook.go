package control

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"example.com/billing/internal/domain"
)

const (
	// exitCode is that of a victim that was told to exit.
	exitCode = 3
	// maxHold bounds a hold: a run that is gone does not keep its victims.
	maxHold = 5 * time.Second
)

// Hook is the victim's end: it does what it is told when the flow gets there.
type Hook struct {
	conn  net.Conn
	armed atomic.Pointer[armed]

	mu   sync.Mutex // of writing
	held chan struct{}
}

var _ domain.Faults = (*Hook)(nil)

// armed is an order that waits for its point.
type armed struct {
	Order
	left atomic.Int64
}

// Dial connects to a run's socket and follows its orders until it is closed.
func Dial(ctx context.Context, socket string) (*Hook, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	h := &Hook{conn: conn, held: make(chan struct{}, 1)}
	go h.listen()
	return h, nil
}

// listen takes orders. It ends with the connection.
func (h *Hook) listen() {
	lines := bufio.NewScanner(h.conn)
	for lines.Scan() {
		var o Order
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			continue
		}
		switch o.Deed {
		case Disarm:
			h.armed.Store(nil)
		case Go:
			select {
			case h.held <- struct{}{}:
			default:
			}
		default:
			a := &armed{Order: o}
			a.left.Store(o.Skip)
			h.armed.Store(a)
		}
	}
}

// Hit implements [domain.Faults].
func (h *Hook) Hit(ctx context.Context, at domain.Point) {
	a := h.armed.Load()
	if a == nil || a.Point != at || a.left.Add(-1) >= 0 || !h.armed.CompareAndSwap(a, nil) {
		return
	}
	select {
	case <-h.held: // of a hold that was over by then
	default:
	}
	h.report(a.Number)
	switch a.Deed {
	case Kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case Stop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case Exit:
		os.Exit(exitCode)
	case Hold:
		h.hold(ctx)
	default:
	}
}

func (h *Hook) hold(ctx context.Context) {
	timer := time.NewTimer(maxHold)
	defer timer.Stop()
	select {
	case <-h.held:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (h *Hook) report(number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, err := json.Marshal(Report{Number: number})
	if err != nil {
		return // a number always marshals
	}
	_, _ = h.conn.Write(append(line, '\n')) // a run that is gone has nobody to tell
}
