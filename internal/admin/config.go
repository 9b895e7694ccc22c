package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/metric"

	"example.com/billing/internal/domain"
)

// DefaultMaxQueries is how many database connections the admin API uses at most
// when nothing else is said. It counts in the budget of DATABASE_MAX_CONNS.
const DefaultMaxQueries = 2

// Config says where to listen and whom to let in.
type Config struct {
	// Addr is ADMIN_ADDR, host:port; an empty host is every interface, port 0 a free one.
	Addr string
	// Token is ADMIN_TOKEN, the operators' bearer token: reads and writes.
	Token string
	// ReadToken is ADMIN_READ_TOKEN: reads only. It differs from Token.
	ReadToken string
	// Insecure is ADMIN_INSECURE: everything is open to everyone. For local use.
	Insecure bool
	// MaxQueries is how many reads of the archive run at a time; further ones wait
	// their turn. Default [DefaultMaxQueries].
	MaxQueries int
}

// Deps are what the API shows. All are required but Alive, Checks and Meters.
type Deps struct {
	Archive   domain.Archive
	Operator  Operator
	Group     string        // consumer group whose counters are shown
	Retention time.Duration // DEDUP_RETENTION, as shown with the statistics
	// Consumer tells what the consumer does now. It is called for every request
	// that shows it, and waits for nobody.
	Consumer func() ConsumerStatus
	// Intake is paused and resumed by operators.
	Intake Intake
	// Config tells what the process runs with.
	Config func() ConfigStatus
	// Checks are the components of readiness and health.
	Checks []Check
	// Alive reports whether the process itself is well: an error means that only a
	// restart helps. It waits for nobody and asks neither broker, database nor provider.
	Alive   func() error
	Metrics http.Handler
	OpenAPI []byte               // the bytes of api/openapi.yaml
	Meters  metric.MeterProvider // nil records nothing
	Clock   domain.Clock
	Logger  *slog.Logger
}

// ConsumerStatus is what the consumer does at one moment.
type ConsumerStatus struct {
	Topic string
	Group string
	// OffsetStore is who keeps the positions: kafka or postgres.
	OffsetStore string
	Running     bool      // polling: neither before the start nor draining
	LastPoll    time.Time // zero before the first
	// BrokerError is the latest trouble with the brokers, empty once it is over.
	BrokerError      string
	BrokerErrorSince time.Time
	Fatal            string // the error that ended the client for good
	LeavingLanes     int    // lanes of partitions that left and still drain
	Pauses           []Pause
	Partitions       []PartitionStatus // those assigned to this process, in order
}

// Pause is why the whole intake stands still, and since when.
type Pause struct {
	By     string // who: "provider" when the payment provider refuses us or fails, else an operator
	Reason string
	Since  time.Time
}

// PartitionStatus is the state of one assigned partition. Offsets and Lag are -1
// while unknown.
type PartitionStatus struct {
	Partition     int32
	State         string
	Queued        int   // records that wait or are in flight
	Batches       int   // in flight
	InFlight      int   // records of these
	Done          int64 // the next offset to commit: all below it is durable
	Committed     int64
	HighWatermark int64
	Lag           int64
	Paused        string // why nothing is fetched; empty when it is
	Failures      int    // of the batch at the head, in a row
	LastError     string
}

// Validate returns every complaint at once.
func (c *Config) Validate() error {
	var complaints []error
	if _, port, err := net.SplitHostPort(c.Addr); err != nil || !validPort(port) {
		complaints = append(complaints, fmt.Errorf("ADMIN_ADDR: %q is not host:port", c.Addr))
	}
	for name, token := range map[string]string{"ADMIN_TOKEN": c.Token, "ADMIN_READ_TOKEN": c.ReadToken} {
		if !validToken(token) {
			complaints = append(complaints, fmt.Errorf("%s: only printable ASCII without spaces, at most %d bytes", name, maxTokenBytes))
		}
	}
	if c.Token != "" && c.Token == c.ReadToken {
		complaints = append(complaints, errors.New("ADMIN_READ_TOKEN: must differ from ADMIN_TOKEN, or readers could write"))
	}
	if c.MaxQueries < 0 {
		complaints = append(complaints, errors.New("the admin API's queries: must not be negative"))
	}
	return errors.Join(complaints...)
}

// validPort accepts the ports that can be listened on; 0 is a free one.
func validPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

func (d *Deps) validate() error {
	missing := func(name string) error { return fmt.Errorf("the admin API needs %s", name) }
	var complaints []error
	if d.Archive == nil || d.Operator == nil {
		complaints = append(complaints, missing("an archive and an operator"))
	}
	if d.Consumer == nil {
		complaints = append(complaints, missing("a consumer"))
	}
	if d.Intake == nil || d.Config == nil {
		complaints = append(complaints, missing("an intake and a configuration"))
	}
	if d.Metrics == nil || len(d.OpenAPI) == 0 {
		complaints = append(complaints, missing("metrics and its specification"))
	}
	if d.Clock == nil || d.Logger == nil {
		complaints = append(complaints, missing("a clock and a logger"))
	}
	for _, check := range d.Checks {
		if check.Name == "" || check.Run == nil {
			complaints = append(complaints, missing("a name and a function for each check"))
		}
	}
	return errors.Join(complaints...)
}
