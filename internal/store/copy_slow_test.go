package store_test

import (
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

// narrow returns the URL of a database behind a network that carries so many bytes a second to it.
func narrow(t *testing.T, databaseURL string, perSecond int) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	network, server := "tcp", u.Host
	if dir := u.Query().Get("host"); dir != "" {
		network, server = "unix", dir+"/.s.PGSQL."+u.Query().Get("port")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go carry(client, network, server, perSecond)
		}
	}()
	u.Host, u.RawQuery = l.Addr().String(), "sslmode=disable"
	return u.String()
}

func carry(client net.Conn, network, server string, perSecond int) {
	defer func() { _ = client.Close() }()
	db, err := net.Dial(network, server)
	if err != nil {
		return
	}
	defer func() { _ = db.Close() }()
	go func() { _, _ = io.Copy(client, db) }()
	const pieces = 100 // a second
	buf := make([]byte, perSecond/pieces)
	for {
		n, err := io.ReadFull(client, buf[:1])
		if err != nil {
			return
		}
		if more, err := client.Read(buf[n:]); err == nil {
			n += more
		}
		if _, err := db.Write(buf[:n]); err != nil {
			return
		}
		time.Sleep(time.Second / pieces)
	}
}

// The database counts the way of a COPY's rows as time of the statement, but not that of an INSERT's.
func TestLargeRecordsComeThroughANarrowNetworkHoweverManyTheyAre(t *testing.T) {
	t.Parallel()
	const total, perSecond = 3 << 20, 2 << 20
	for _, n := range []int{8, many} {
		databaseURL := storetest.URL(t)
		c := storetest.Config(narrow(t, databaseURL, perSecond))
		c.SideTimeout, c.LockTimeout = 600*time.Millisecond, 100*time.Millisecond
		s := open(t, c)
		all, messages := make([]domain.Intent, n), make([]domain.Message, n)
		for i := range all {
			all[i] = aCalling(func(in *domain.Intent) { in.Record.Value = make([]byte, total/n) })
			messages[i] = aMessage(string(make([]byte, total/n)))
		}
		require.Len(t, opened(t, s, all...), n, "%d of %d bytes each", n, total/n)
		publish(t, s, messages...)
	}
}
