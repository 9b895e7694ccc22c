package app

import (
	"errors"
	"fmt"
	"slices"

	"example.com/billing/internal/kafka"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/store"
)

// validate returns every complaint about the settings, joined. Vars are the
// variables that were really given.
func (s *Settings) validate(vars map[string]string) error {
	for name, topic := range map[string]*string{"KAFKA_DLQ_TOPIC": &s.Kafka.DLQTopic, "KAFKA_EVENTS_TOPIC": &s.Kafka.EventsTopic} {
		if v, given := vars[name]; given && v == "" {
			*topic = "" // empty says: not published
		}
	}
	complaints := s.bounds()
	for _, i := range s.Inequalities() {
		if !i.Holds() {
			complaints = append(complaints, errors.New(i.String()))
		}
	}
	adminConfig := s.admin()
	complaints = append(complaints,
		s.kafka().Validate(),
		s.validateTopics(),
		s.validateRetention(),
		oneOf("OFFSET_STORE", s.Flow.OffsetStore, inKafka, inPostgres),
		s.payment().Validate(),
		adminConfig.Validate(),
		store.CheckURL(s.Database.URL),
		s.Log.validate(),
	)
	return errors.Join(complaints...)
}

// bounds checks each figure by itself.
func (s *Settings) bounds() (complaints []error) {
	positive := func(name string, ok bool) {
		if !ok {
			complaints = append(complaints, fmt.Errorf("%s must be above zero", name))
		}
	}
	positive("CHARGE_BUDGET", s.Flow.ChargeBudget > 0)
	positive("PAYMENT_TIMEOUT", s.Payment.Timeout > 0)
	positive("PAYMENT_KEY_TTL", s.Payment.KeyTTL > 0)
	positive("RETRY_HORIZON", s.Flow.RetryHorizon > 0)
	positive("DEDUP_RETENTION", s.Flow.DedupRetention > 0)
	positive("SHUTDOWN_TIMEOUT", s.ShutdownTimeout > 0)
	positive("MAX_IN_FLIGHT", s.Flow.MaxInFlight > 0)
	return complaints
}

func (l *LogSettings) validate() error {
	return errors.Join(
		oneOf("LOG_LEVEL", l.Level, "debug", "info", "warn", "error"),
		oneOf("LOG_FORMAT", l.Format, "json", "text"),
	)
}

func oneOf(name, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s=%s: must be one of %v", name, value, allowed)
}

// kafka returns the consumer's configuration.
func (s *Settings) kafka() kafka.Config {
	c := kafka.DefaultConfig()
	k := &s.Kafka
	c.Brokers, c.Topic, c.GroupID = k.Brokers, k.Topic, k.GroupID
	c.SessionTimeout, c.CreateTopics = k.SessionTimeout, k.CreateTopics
	c.BatchMax, c.MaxTransactions = s.Flow.BatchMax, s.Flow.MaxTransactions
	c.DrainTimeout, c.MaxPollInterval = s.drain(), s.maxPollInterval()
	c.Security = kafka.Security{
		Protocol: k.Protocol, SASLMechanism: k.SASLMechanism, SASLUsername: k.SASLUsername, SASLPassword: k.SASLPassword,
		CAFile: k.CAFile, CertFile: k.CertFile, KeyFile: k.KeyFile,
	}
	return c
}

// payment returns the client's configuration.
func (s *Settings) payment() payment.Config {
	return payment.Config{
		URL: s.Payment.URL, APIKey: s.Payment.APIKey, Timeout: s.Payment.Timeout,
		MaxInFlight: s.Flow.MaxInFlight, Attempts: quickAttempts,
	}
}

// store returns the store's configuration.
func (s *Settings) store() store.Config {
	return store.Config{
		URL: s.Database.URL, MaxTransactions: s.Flow.MaxTransactions,
		LockTimeout: s.lockTimeout(), IdleTimeout: s.idleInTransaction(),
		SideLockTimeout: sideLockTimeout, SideTimeout: sideTimeout,
	}
}
