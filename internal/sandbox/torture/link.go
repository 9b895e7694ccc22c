package torture

import (
	"context"
	"fmt"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"example.com/billing/internal/sandbox/process"
)

// link is a TCP connection of the world that can be disturbed.
type link struct {
	proxy *toxiproxy.Proxy
}

// newLinks returns what links share.
func newLinks() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
}

// openLink listens on a free port and leads to upstream, host:port.
func openLink(server *toxiproxy.ApiServer, name, upstream string) (*link, error) {
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", name, err)
	}
	return openLinkOn(server, name, fmt.Sprintf("127.0.0.1:%d", ports[0]), upstream)
}

func openLinkOn(server *toxiproxy.ApiServer, name, at, upstream string) (*link, error) {
	l := &link{proxy: toxiproxy.NewProxy(server, name, at, upstream)}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("link to %s: %w", name, err)
	}
	return l, nil
}

func (l *link) addr() string { return l.proxy.Listen }

func (l *link) close() { l.proxy.Stop() }

// cut closes every connection and refuses new ones for a while.
func (l *link) cut(ctx context.Context, d time.Duration) error {
	l.proxy.Stop()
	pause(ctx, d)
	if err := l.proxy.Start(); err != nil {
		return fmt.Errorf("mend the link to %s: %w", l.proxy.Name, err)
	}
	return nil
}

// swallow takes everything and passes nothing on for a while; then it closes the
// connections that it has swallowed from.
func (l *link) swallow(ctx context.Context, d time.Duration) error {
	return l.poison(ctx, d, `{"name":"up","type":"timeout","stream":"upstream"}`, `{"name":"down","type":"timeout","stream":"downstream"}`)
}

// halve closes each connection after so many bytes towards the far end, for a while:
// in the middle of a request as a rule.
func (l *link) halve(ctx context.Context, d time.Duration, bytes int64) error {
	return l.poison(ctx, d, fmt.Sprintf(`{"name":"half","type":"limit_data","stream":"upstream","attributes":{"bytes":%d}}`, bytes))
}

func (l *link) poison(ctx context.Context, d time.Duration, toxics ...string) error {
	defer l.proxy.Toxics.ResetToxics(context.WithoutCancel(ctx))
	for _, toxic := range toxics {
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return fmt.Errorf("poison the link to %s: %w", l.proxy.Name, err)
		}
	}
	pause(ctx, d)
	return nil
}

// pause waits for d or the end of ctx, and reports whether d passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
