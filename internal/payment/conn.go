package payment

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// countedConn counts the writes to a connection, so that it can be told for sure
// whether anything of a request was handed to it.
type countedConn struct {
	net.Conn

	mu     sync.Mutex
	writes uint64 // begun; a failed write may have sent a part
	sealed bool
}

// Write counts before it writes. Once the connection is sealed it writes nothing.
func (c *countedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return 0, net.ErrClosed
	}
	c.writes++
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *countedConn) count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// seal lets nothing more be written and returns the final count. Without it the
// transport's writer might still start on a request that was given up meanwhile,
// after it had been called unsent.
func (c *countedConn) seal() uint64 {
	c.mu.Lock()
	c.sealed = true
	writes := c.writes
	c.mu.Unlock()
	_ = c.Close() // the transport drops a connection that it finds closed
	return writes
}

// underneath finds the counted connection below TLS.
func underneath(conn net.Conn) *countedConn {
	for {
		switch c := conn.(type) {
		case *countedConn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// wire watches which connection a request got. The transport may in principle try
// more than one; each counts.
type wire struct {
	got     []*countedConn
	before  []uint64
	foreign bool // a connection that isn't counted: assume the worst
}

func (w *wire) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			conn := underneath(info.Conn)
			if conn == nil {
				w.foreign = true
				return
			}
			w.got = append(w.got, conn)
			w.before = append(w.before, conn.count())
		},
	})
}

// sent ends a failed request and reports whether any byte of it may have left.
func (w *wire) sent() bool {
	sent := w.foreign
	for i, conn := range w.got {
		if conn.seal() > w.before[i] {
			sent = true
		}
	}
	return sent
}

// bufferBytes is the size of each of the two buffers of a connection. A request
// and an answer fit in; larger ones take another system call. With a thousand
// charges in flight they are most of what a connection costs.
const bufferBytes = 1 << 10

// newTransport returns a transport for requests that are money: HTTP/1.1 only,
// every connection counted, as many kept as may be in flight.
func newTransport(c Config) *http.Transport {
	dialer := &net.Dialer{Timeout: c.Timeout, KeepAlive: 15 * time.Second}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	return &http.Transport{
		Protocols: http1,
		Proxy:     tunnelOnly,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countedConn{Conn: conn}, nil
		},
		OnProxyConnectResponse: proxyRefusal,
		// The transport finishes a dial whose request has given up, so it has bounds of its own.
		TLSHandshakeTimeout:    c.Timeout,
		MaxConnsPerHost:        c.MaxInFlight,
		MaxIdleConnsPerHost:    c.MaxInFlight,
		IdleConnTimeout:        c.IdleTimeout,
		WriteBufferSize:        bufferBytes,
		ReadBufferSize:         bufferBytes,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // the bounds on bodies are bounds on what is sent
	}
}
