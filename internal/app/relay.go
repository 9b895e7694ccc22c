package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
	"example.com/billing/internal/store"
)

// relayLate is the age of the oldest message from which on publishing counts as
// behind: far above what an open batch can hold it up for.
const relayLate = time.Minute

// topics are where messages go, by their kind; a kind that is not published has none.
func (s *Settings) topics() map[domain.MessageKind]string {
	topics := map[domain.MessageKind]string{}
	if s.Kafka.EventsTopic != "" {
		topics[domain.EventMessage] = s.Kafka.EventsTopic
	}
	if s.Kafka.DLQTopic != "" {
		topics[domain.LetterMessage] = s.Kafka.DLQTopic
	}
	return topics
}

// relay returns the relay's configuration.
func (s *Settings) relay() kafka.RelayConfig {
	c := kafka.DefaultRelayConfig()
	c.Topics = s.topics()
	return c
}

// validateTopics complains about topics that would feed on themselves or be mixed up.
func (s *Settings) validateTopics() error {
	k := &s.Kafka
	var errs []error
	for name, topic := range map[string]string{"KAFKA_DLQ_TOPIC": k.DLQTopic, "KAFKA_EVENTS_TOPIC": k.EventsTopic} {
		if topic != "" && topic == k.Topic {
			errs = append(errs, fmt.Errorf("%s=%s: is the topic that is consumed", name, topic))
		}
	}
	if k.DLQTopic != "" && k.DLQTopic == k.EventsTopic {
		errs = append(errs, fmt.Errorf("KAFKA_DLQ_TOPIC=%s: is KAFKA_EVENTS_TOPIC, too", k.DLQTopic))
	}
	return errors.Join(append(errs, s.relay().Validate())...)
}

// newRelay builds what publishes the outbox, unless nothing is to be published.
func (a *App) newRelay() (err error) {
	s := &a.settings
	if len(s.topics()) == 0 {
		return nil
	}
	if a.outbox, err = store.NewOutbox(s.store()); err != nil {
		return err
	}
	client := s.kafka()
	client.Faults = a.faults
	a.relay, err = kafka.NewRelay(client, s.relay(), a.outbox, a.log, kafka.Telemetry{Meters: a.telemetry.Meters()}, a.clock)
	return err
}

// startRelay publishes until the returned function is called, which waits for the
// end. The relay outlives ctx: what commits last is to be published, too.
func (a *App) startRelay(ctx context.Context) (end func()) {
	if a.relay == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.relay.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (a *App) closeRelay() error {
	var errs []error
	if a.relay != nil {
		if a.relay.Status().Running {
			return nil // it did not end in time; the process is about to
		}
		errs = append(errs, a.relay.Close())
	}
	if a.outbox != nil {
		errs = append(errs, a.outbox.Close())
	}
	return errors.Join(errs...)
}

// checkRelay never fails: charging goes on without it, and what is not published
// waits in the outbox.
func (a *App) checkRelay(context.Context) admin.Verdict {
	return relayVerdict(a.relay.Status(), a.clock.Now())
}

// relayVerdict tells of what keeps messages from being published, and of those that the
// brokers have refused.
func relayVerdict(s kafka.RelayStatus, now time.Time) admin.Verdict {
	var found []admin.Verdict
	backlog := s.Backlog
	age := time.Duration(0)
	if !backlog.Oldest.IsZero() {
		age = now.Sub(backlog.Oldest).Round(time.Second)
	}
	switch {
	case s.Error != "":
		// Shown without a token: the error may name host and user of the database.
		found = append(found, admin.Verdict{Status: admin.StatusWarn, Since: s.ErrorSince, Reason: fmt.Sprintf(
			"nothing is published, the log says why; %d messages wait, the oldest for %s", backlog.Rows, age)})
	case age > relayLate:
		found = append(found, admin.Verdict{Status: admin.StatusWarn, Since: backlog.Oldest, Reason: fmt.Sprintf(
			"%d messages wait to be published, the oldest for %s", backlog.Rows, age)})
	}
	if backlog.Refused > 0 {
		found = append(found, admin.Verdict{Status: admin.StatusWarn, Reason: fmt.Sprintf(
			"%d messages were refused by the brokers and lie in outbox_refused", backlog.Refused)})
	}
	return admin.Worst(found...)
}
