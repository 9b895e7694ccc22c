package torture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is a server that sends back what it gets, behind a link.
func echo(t *testing.T) *link {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	l, err := openLink(newLinks(), "echo", server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(l.close)
	return l
}

func dial(t *testing.T, l *link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	return conn
}

// said sends a word and returns what comes back.
func said(conn net.Conn, word string) (string, error) {
	if _, err := fmt.Fprintln(conn, word); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return line, err
}

func TestALinkThatIsCutEndsItsConnectionsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	l := echo(t)
	conn := dial(t, l)
	line, err := said(conn, "one")
	require.NoError(t, err)
	require.Equal(t, "one\n", line)
	cut := make(chan error, 1)
	go func() { cut <- l.cut(t.Context(), 300*time.Millisecond) }()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, net.ErrClosed)
	_, err = net.Dial("tcp", l.addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, <-cut)
	line, err = said(dial(t, l), "two")
	require.NoError(t, err)
	require.Equal(t, "two\n", line)
}

func TestALinkThatSwallowsAnswersNobodyAndThenHangsUp(t *testing.T) {
	t.Parallel()
	l := echo(t)
	conn := dial(t, l)
	_, err := said(conn, "one")
	require.NoError(t, err)
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- l.swallow(t.Context(), 300*time.Millisecond) }()
	require.Eventually(t, func() bool { // from some moment on nothing comes back
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := said(conn, "two")
		return err != nil
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, <-done)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.ReadAll(conn)
	require.False(t, errors.Is(err, net.ErrClosed) || isTimeout(err), "it hangs up: %v", err)
	line, err := said(dial(t, l), "three")
	require.NoError(t, err)
	require.Equal(t, "three\n", line)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestALinkThatHalvesBreaksARequestInTheMiddle(t *testing.T) {
	t.Parallel()
	bodies := make(chan error, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		bodies <- err
	}))
	defer server.Close()
	l, err := openLink(newLinks(), "server", server.Listener.Addr().String())
	require.NoError(t, err)
	defer l.close()
	done := make(chan error, 1)
	go func() { done <- l.halve(t.Context(), 500*time.Millisecond, 200) }()
	require.Eventually(t, func() bool { // from some moment on
		conn := dial(t, l)
		_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n%0400d", 7)
		if err != nil {
			return false
		}
		return errors.Is(<-bodies, io.ErrUnexpectedEOF)
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, <-done)
}
