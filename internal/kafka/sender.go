package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// maxMessageBytes is where the client itself refuses a message: below what a broker
// reads as one request (100 MiB unless configured), which it would answer by hanging
// up. What is smaller is for the broker to judge.
const maxMessageBytes = 64 << 20

// sender hands messages to an idempotent producer and waits for its reports. It is
// used by one goroutine at a time.
type sender struct {
	cfg     Config
	attempt time.Duration
	logger  *slog.Logger

	client  *confluent.Producer // nil once it was closed, until the next message
	logs    chan confluent.LogEvent
	helpers sync.WaitGroup
	end     chan struct{}
}

func newSender(cfg Config, attempt time.Duration, logger *slog.Logger) *sender {
	return &sender{cfg: cfg, attempt: attempt, logger: logger}
}

// producing returns the settings of the producer.
func (s *sender) producing(logs chan confluent.LogEvent) *confluent.ConfigMap {
	settings := s.cfg.connection()
	maps.Copy(settings, confluent.ConfigMap{
		"enable.idempotence":        true,
		"acks":                      "all",
		"message.timeout.ms":        int(s.attempt.Milliseconds()),
		"message.max.bytes":         maxMessageBytes,
		"partitioner":               "murmur2_random", // as the Java client does: orders and their outcomes lie alike
		"linger.ms":                 2,                // a batch is handed over in one go
		"go.delivery.report.fields": "none",
		"go.events.channel.size":    100,
		"go.produce.channel.size":   0,
		"go.logs.channel.enable":    true,
		"go.logs.channel":           logs,
	})
	return &settings
}

// open makes a client, unless there is one.
func (s *sender) open() error {
	if s.client != nil {
		return nil
	}
	logs := make(chan confluent.LogEvent, 64)
	client, err := confluent.NewProducer(s.producing(logs))
	if err != nil {
		return err
	}
	s.client, s.logs, s.end = client, logs, make(chan struct{})
	s.helpers.Go(func() {
		for e := range client.Events() { // it would stand still if nobody listened
			if trouble, ok := e.(confluent.Error); ok {
				s.logger.Info("kafka producer", "message", trouble.Error())
			}
		}
	})
	end := s.end
	s.helpers.Go(func() { forwardLogs(s.logger, logs, end) })
	return nil
}

// send returns what became of each message: nil, or why it is not known to be
// delivered. It takes at most the attempt, and a little; when ctx ends it stops waiting.
func (s *sender) send(ctx context.Context, messages []*confluent.Message) []error {
	errs := make([]error, len(messages))
	if len(messages) == 0 {
		return errs
	}
	if err := s.open(); err != nil {
		return all(errs, err)
	}
	reports := make(chan confluent.Event, len(messages)) // a late report blocks nobody
	waiting := make(map[int]bool, len(messages))
	for i, m := range messages {
		m.Opaque = i
		if errs[i] = s.client.Produce(m, reports); errs[i] == nil {
			waiting[i] = true
		}
	}
	limit := time.NewTimer(s.attempt + 2*time.Second)
	defer limit.Stop()
	for len(waiting) > 0 {
		select {
		case e := <-reports:
			if m, ok := e.(*confluent.Message); ok {
				if i, ok := m.Opaque.(int); ok {
					errs[i] = m.TopicPartition.Error
					delete(waiting, i)
				}
			}
		case <-ctx.Done():
			return unheard(errs, waiting, ctx.Err())
		case <-limit.C:
			return unheard(errs, waiting, errors.New("no report came"))
		}
	}
	s.closeAfterFatal()
	return errs
}

func all(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func unheard(errs []error, waiting map[int]bool, err error) []error {
	for i := range waiting {
		errs[i] = err
	}
	return errs
}

// closeAfterFatal gives up a client that can produce no more.
func (s *sender) closeAfterFatal() {
	if fatal := s.client.GetFatalError(); fatal != nil {
		s.logger.Error("kafka producer: fatal error; a new one is made", "error", fatal)
		if err := s.close(); err != nil {
			s.logger.Error("kafka producer", "error", err)
		}
	}
}

// close frees the client. What it had not delivered is forgotten, and stays in the
// outbox. It waits a bounded time.
func (s *sender) close() error {
	if s.client == nil {
		return nil
	}
	client := s.client
	s.client = nil
	_ = client.Purge(confluent.PurgeQueue | confluent.PurgeInFlight) // else closing waits for it
	closed := within(closeTimeout, client.Close)
	close(s.end)
	if !closed {
		return fmt.Errorf("close kafka producer: not done within %s", closeTimeout)
	}
	s.helpers.Wait()
	return nil
}

// fault is whose fault it is that a message is not delivered.
type fault uint8

const (
	nobody    fault = iota // the brokers are away or busy: it is tried again
	theRecord              // it will never be taken
	theTopic               // we may not write there
)

// blame tells whose fault an error is. What is not known is nobody's.
func blame(err error) fault {
	var e confluent.Error
	if !errors.As(err, &e) {
		return nobody
	}
	switch e.Code() {
	case confluent.ErrMsgSizeTooLarge, confluent.ErrRecordListTooLarge, confluent.ErrInvalidRecord,
		confluent.ErrInvalidTimestamp, confluent.ErrUnsupportedForMessageFormat, confluent.ErrBadMsg, confluent.ErrPolicyViolation:
		return theRecord
	case confluent.ErrTopicAuthorizationFailed, confluent.ErrTopicException:
		return theTopic
	default:
		return nobody
	}
}
