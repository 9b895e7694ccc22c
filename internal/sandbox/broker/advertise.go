package broker

import "net"

// advertised is a listener that says it listens elsewhere: the broker tells its
// clients the address that its listener has.
type advertised struct {
	net.Listener

	addr net.Addr
}

func (a advertised) Addr() net.Addr { return a.addr }

// advertising listens as it is told to and says that it does so at address.
func advertising(address string) func(network, at string) (net.Listener, error) {
	return func(network, at string) (net.Listener, error) {
		addr, err := net.ResolveTCPAddr(network, address)
		if err != nil {
			return nil, err
		}

		l, err := net.Listen(network, at) //nolint:noctx // returns at once
		if err != nil {
			return nil, err
		}

		return advertised{Listener: l, addr: addr}, nil
	}
}
