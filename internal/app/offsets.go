package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
	"example.com/billing/internal/store"
)

// consuming returns the consumer's configuration, with who keeps its positions. Name is
// this process's, as it takes partitions.
func (a *App) consuming(name string) kafka.Config {
	c := a.settings.kafka()
	c.Faults = a.faults
	if a.settings.Flow.OffsetStore == inPostgres {
		c.Positions = a.store.Offsets(name)
	}
	return c
}

// The values of OFFSET_STORE.
const (
	inKafka    = "kafka"
	inPostgres = "postgres"
)

// OffsetsSettings are what the offsets commands need.
type OffsetsSettings struct {
	Kafka       KafkaSettings
	OffsetStore string `env:"OFFSET_STORE" envDefault:"kafka"`
	DatabaseURL string `env:"DATABASE_URL"`
}

// LoadOffsets reads what the offsets commands need.
func LoadOffsets(environ []string) (OffsetsSettings, error) {
	var s OffsetsSettings
	if _, err := parse(environ, &s); err != nil {
		return s, err
	}
	complaints := []error{oneOf("OFFSET_STORE", s.OffsetStore, inKafka, inPostgres), s.kafka().Validate()}
	switch {
	case s.DatabaseURL != "":
		complaints = append(complaints, store.CheckURL(s.DatabaseURL))
	case s.OffsetStore == inPostgres:
		complaints = append(complaints, errors.New("DATABASE_URL is required where it keeps the offsets"))
	}
	return s, errors.Join(complaints...)
}

func (s *OffsetsSettings) kafka() kafka.Config {
	all := Settings{Kafka: s.Kafka}
	c := kafka.DefaultConfig()
	c.Brokers, c.Topic, c.GroupID, c.Security = s.Kafka.Brokers, s.Kafka.Topic, s.Kafka.GroupID, all.kafka().Security
	return c
}

// offsets is one run of an offsets command: the brokers, and the book where there is one.
type offsets struct {
	settings OffsetsSettings
	brokers  *kafka.GroupAdmin
	store    *store.Store   // nil: no database was named
	book     *store.Offsets // likewise
}

// withOffsets runs an offsets command.
func withOffsets(cmd *cobra.Command, p Process, run func(context.Context, *offsets) error) error {
	settings, err := LoadOffsets(p.Environ)
	if err != nil {
		return usageError{fmt.Errorf("configuration:\n%w", err)}
	}
	log, err := p.commandLogger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	o := &offsets{settings: settings}
	if o.brokers, err = kafka.NewGroupAdmin(settings.kafka(), log); err != nil {
		return usageError{err}
	}
	defer o.brokers.Close()
	if settings.DatabaseURL != "" {
		o.store, err = store.New(store.Config{
			URL: settings.DatabaseURL, MaxTransactions: 1, LockTimeout: sideTimeout, IdleTimeout: sideTimeout,
			SideLockTimeout: sideTimeout, SideTimeout: 2 * sideTimeout,
		})
		if err != nil {
			return err
		}
		o.book = o.store.Offsets("billing offsets reset")
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), offsetsTimeout)
	defer cancel()
	err = run(ctx, o)
	if o.store != nil {
		err = errors.Join(err, o.store.Close())
	}
	return err
}

// offsetsTimeout bounds a whole offsets command.
const offsetsTimeout = time.Minute

// PartitionOffsets are where one partition stands; null: none. What the admin API tells of a
// partition goes by its names.
type PartitionOffsets struct {
	Partition int32  `json:"partition"`
	Database  *int64 `json:"database_offset"`
	Kafka     *int64 `json:"committed_offset"`
	First     int64  `json:"first_offset"`
	End       int64  `json:"high_watermark"` // behind the last record that consumers see
	// Lag is how many offsets lie between where the group goes on and the end; control
	// records of transactions count among them.
	Lag int64 `json:"lag"`
	// Lost: the position lies outside of the log; the group goes on at the first record.
	Lost bool `json:"lost"`
}

// OffsetsReport is what billing offsets show prints as JSON.
type OffsetsReport struct {
	Topic       string             `json:"topic"`
	Group       string             `json:"group"`
	OffsetStore string             `json:"offset_store"`
	Members     int                `json:"members"`
	Partitions  []PartitionOffsets `json:"partitions"`
}

// report asks both stores.
func (o *offsets) report(ctx context.Context) (OffsetsReport, error) {
	kept := map[int32]int64{}
	if o.book != nil {
		rows, err := o.book.List(ctx, o.settings.Kafka.GroupID, o.settings.Kafka.Topic)
		if err != nil {
			return OffsetsReport{}, err
		}
		for _, row := range rows {
			kept[row.Partition] = row.Next
		}
	}
	group, err := o.brokers.Describe(ctx)
	if err != nil {
		return OffsetsReport{}, err
	}
	r := OffsetsReport{
		Topic: o.settings.Kafka.Topic, Group: o.settings.Kafka.GroupID, OffsetStore: o.settings.OffsetStore, Members: group.Members,
		Partitions: make([]PartitionOffsets, 0, len(group.Partitions)),
	}
	for _, p := range group.Partitions {
		at := PartitionOffsets{Partition: p.Partition, First: p.First, End: p.End, Kafka: someOffset(p.Committed)}
		if next, ok := kept[p.Partition]; ok {
			at.Database = someOffset(next)
		}
		at.Lag = max(0, p.End-at.next(r.OffsetStore))
		at.Lost = at.lost(r.OffsetStore)
		r.Partitions = append(r.Partitions, at)
	}
	return r, nil
}

// next is where the group goes on: what the store of positions holds, else what Kafka does,
// else the first record; the first one too where that lies outside of the log.
func (p *PartitionOffsets) next(offsetStore string) int64 {
	next := p.First
	switch {
	case offsetStore == inPostgres && p.Database != nil:
		next = *p.Database
	case p.Kafka != nil:
		next = *p.Kafka
	}
	if next < p.First || next > p.End {
		return p.First
	}
	return next
}

// lost reports whether the position lies outside of the log, so that the group goes on at its
// first record: records were removed before they were read, or the log was cut back or is
// another one.
func (p *PartitionOffsets) lost(offsetStore string) bool {
	at := p.Kafka
	if offsetStore == inPostgres && p.Database != nil {
		at = p.Database
	}
	return at != nil && (*at < p.First || *at > p.End)
}

func someOffset(n int64) *int64 {
	if n == domain.NoOffset {
		return nil
	}
	return &n
}
