package broker

import (
	"net"
	"sync"
)

// doors knows the broker's open connections by the address of their client, so that one can be closed.
type doors struct {
	mu   sync.Mutex
	open map[string]net.Conn
}

func newDoors() *doors { return &doors{open: make(map[string]net.Conn)} }

// behind returns what listens as listen does, with every connection known here.
func (d *doors) behind(listen func(network, at string) (net.Listener, error)) func(network, at string) (net.Listener, error) {
	return func(network, at string) (net.Listener, error) {
		l, err := listen(network, at)
		if err != nil {
			return nil, err
		}

		return watched{Listener: l, doors: d}, nil
	}
}

// shut closes the connection of a client; one that is not open any more needs none.
func (d *doors) shut(client string) {
	d.mu.Lock()
	conn := d.open[client]
	d.mu.Unlock()

	if conn != nil {
		_ = conn.Close() // whoever reads from it hears of it
	}
}

// watched is a listener whose connections are known to doors.
type watched struct {
	net.Listener

	doors *doors
}

func (w watched) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}

	w.doors.mu.Lock()
	defer w.doors.mu.Unlock()
	w.doors.open[conn.RemoteAddr().String()] = conn

	return door{Conn: conn, doors: w.doors}, nil
}

// door is a connection that is forgotten when it is closed.
type door struct {
	net.Conn

	doors *doors
}

func (d door) Close() error {
	client := d.RemoteAddr().String()

	d.doors.mu.Lock()
	if d.doors.open[client] == d.Conn {
		delete(d.doors.open, client)
	}
	d.doors.mu.Unlock()

	return d.Conn.Close()
}
