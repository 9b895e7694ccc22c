package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// acceptTimeout bounds the wait for a victim that has just been started.
	acceptTimeout = 30 * time.Second
	// sendTimeout bounds the giving of an order: a victim that stands still reads none.
	sendTimeout = time.Second
)

// Line is the run's end: one victim at a time.
type Line struct {
	listener net.Listener
	reached  func(number int)
	accepted chan net.Conn
	ended    chan struct{}

	mu   sync.Mutex
	conn net.Conn
}

// Listen makes the socket. Reached is told the numbers of the orders that are being
// carried out; it must be quick. The caller closes the line.
func Listen(socket string, reached func(number int)) (*Line, error) {
	_ = os.Remove(socket) // of a victim before
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l := &Line{listener: listener, reached: reached, accepted: make(chan net.Conn), ended: make(chan struct{})}
	go l.accept()
	return l, nil
}

// accept takes connections until the line is closed.
func (l *Line) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		select {
		case l.accepted <- conn:
		case <-l.ended:
			_ = conn.Close()
			return
		}
	}
}

// Accept waits for the next victim; gone ends the wait: it has ended before.
func (l *Line) Accept(ctx context.Context, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	select {
	case conn := <-l.accepted:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conn = conn
		go l.listen(conn)
		return nil
	case <-gone:
		return errors.New("control socket: the victim has ended")
	case <-ctx.Done():
		return fmt.Errorf("control socket: no victim: %w", ctx.Err())
	}
}

// listen takes reports until the victim is gone.
func (l *Line) listen(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var r Report
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			l.reached(r.Number)
		}
	}
	_ = conn.Close()
}

// Send gives an order; to a victim that is gone it is an error.
func (l *Line) Send(o Order) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return errors.New("control socket: no victim")
	}
	line, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if _, err := l.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// Close removes the socket.
func (l *Line) Close() error {
	close(l.ended)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
	return l.listener.Close()
}
