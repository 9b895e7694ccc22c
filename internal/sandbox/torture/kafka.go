package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"example.com/billing/internal/sandbox/apache"
	"example.com/billing/internal/sandbox/broker"
	"example.com/billing/internal/sandbox/process"
	"example.com/billing/internal/sandbox/run"
)

// shortestSession is the least session timeout that the brokers take.
const shortestSession = 500 * time.Millisecond

// brokers is a broker behind a link, which can be restarted.
type brokers interface {
	// direct is the address that does not lead through the link, as far as the broker has one.
	direct() []string
	restart(ctx context.Context, crash bool) error
	stop(ctx context.Context) error
}

// startBrokers starts a broker whose clients are told the link's address.
func startBrokers(ctx context.Context, kind, dir string, links *toxiproxy.ApiServer, log io.Writer) (brokers, *link, error) {
	ports, err := process.FreePorts(4)
	if err != nil {
		return nil, nil, err
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	if kind == run.KafkaApache {
		l, err := openLinkOn(links, "kafka", at(0), at(2))
		if err != nil {
			return nil, nil, err
		}
		b, err := apache.Start(ctx, apache.Options{
			Port: ports[1], MinSessionTimeout: shortestSession, Log: log, Dir: filepath.Join(dir, "kafka"), Params: map[string]string{
				"listeners":                           "PLAINTEXT://" + at(1) + ",LINKED://" + at(2) + ",CONTROLLER://" + at(3),
				"advertised.listeners":                "PLAINTEXT://" + at(1) + ",LINKED://" + at(0),
				"listener.security.protocol.map":      "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LINKED:PLAINTEXT",
				"controller.quorum.bootstrap.servers": at(3),
			},
		})
		if err != nil {
			l.close()
			return nil, nil, err
		}
		return apacheBroker{b}, l, nil
	}
	l, err := openLinkOn(links, "kafka", at(0), at(1))
	if err != nil {
		return nil, nil, err
	}
	e := &embedded{options: broker.Options{
		Port: ports[1], Advertise: at(0), DataDir: filepath.Join(dir, "kafka"), MinSessionTimeout: shortestSession, Log: log,
	}}
	if e.broker, err = broker.Start(e.options); err != nil {
		l.close()
		return nil, nil, err
	}
	return e, l, nil
}

// apacheBroker is a JVM.
type apacheBroker struct{ *apache.Broker }

func (a apacheBroker) direct() []string { return a.Addrs() }

func (a apacheBroker) restart(ctx context.Context, crash bool) error {
	if crash {
		if err := a.Kill(); err != nil {
			return err
		}
	}
	return a.Restart(ctx)
}

func (a apacheBroker) stop(ctx context.Context) error { return a.Stop(ctx) }

// embedded is a broker in this process, with its data on disk.
type embedded struct {
	options broker.Options
	broker  *broker.Broker
}

func (e *embedded) direct() []string { return []string{fmt.Sprintf("127.0.0.1:%d", e.options.Port)} }

func (e *embedded) restart(ctx context.Context, _ bool) error {
	e.broker.Close()
	var err error
	for range restartTries {
		if e.broker, err = broker.Start(e.options); err == nil {
			return nil
		}
		if !pause(ctx, restartPause) {
			break
		}
	}
	return errors.Join(err, ctx.Err())
}

func (e *embedded) stop(context.Context) error {
	e.broker.Close()
	return nil
}

// The embedded broker's port may be held for a moment by connections of the one before.
const (
	restartTries = 20
	restartPause = 100 * time.Millisecond
)
