package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// Ports come from below the ranges that Linux (32768) and macOS (49152) take for outgoing connections. A server that is restarted on its
	// old port must find it free, and a client that keeps dialling a closed port inside that range may in the end connect to itself.
	portLow, portHigh = 20000, 32000
	portTries         = 200
)

// FreePorts returns n distinct ports that were free on 127.0.0.1 a moment ago. Another process may take one before its user does,
// so a server that finds its port in use should be started again with new ones.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	held := make([]net.Listener, 0, n)

	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()

	for range portTries {
		if len(ports) == n {
			return ports, nil
		}

		port := portLow + rand.IntN(portHigh-portLow) //nolint:gosec // no secret

		// Listening all the while keeps the ports of one call distinct.
		l, err := listen(port)
		if err != nil {
			continue
		}

		held, ports = append(held, l), append(ports, port)
	}

	if len(ports) == n {
		return ports, nil
	}

	return nil, fmt.Errorf("no %d free ports on 127.0.0.1 between %d and %d after %d tries", n, portLow, portHigh, portTries)
}

// CheckPort returns an error when the port of 127.0.0.1 is taken.
func CheckPort(port int) error {
	l, err := listen(port)
	if err != nil {
		return fmt.Errorf("port %d: %w", port, err)
	}

	return l.Close()
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // returns at once
}

// TempDir makes a folder named prefix-PID-random in base (empty: the system's folder for temporary files) and removes the folders of that
// form whose process is gone: what a killed sandbox left behind, in memory perhaps. prefix must not contain a dash.
func TempDir(base, prefix string) (string, error) {
	if base == "" {
		base = os.TempDir()
	}

	sweep(base, prefix)

	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s-%d-", prefix, os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", err)
	}

	return dir, nil
}

// sweep is a courtesy: a folder that cannot be removed (another user's) is left.
func sweep(base, prefix string) {
	found, err := filepath.Glob(filepath.Join(base, prefix+"-*-*"))
	if err != nil {
		return
	}

	for _, dir := range found {
		rest := strings.TrimPrefix(filepath.Base(dir), prefix+"-")
		digits, _, _ := strings.Cut(rest, "-")

		pid, err := strconv.Atoi(digits)
		if err != nil || pid <= 1 {
			continue
		}

		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
