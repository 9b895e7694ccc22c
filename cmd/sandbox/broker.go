package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/sandbox/apache"
	"example.com/billing/internal/sandbox/broker"
	"example.com/billing/internal/sandbox/orders"
)

// stopTimeout bounds the orderly end of a part.
const stopTimeout = 30 * time.Second

type brokerFlags struct {
	apache bool
	port   int
	dir    string
	topics []string
}

func brokerCommand(std streams) *cobra.Command {
	var flags brokerFlags
	c := &cobra.Command{
		Use:   "broker",
		Short: "A Kafka broker on loopback, until it is ended",
		Long: "A Kafka broker on loopback, until it is ended. The first line on standard output is\n" +
			"its address, printed once it answers. The embedded broker speaks the whole protocol\n" +
			"and keeps everything in memory unless --dir is given; --apache is the real one (it\n" +
			"needs Java 17 and the jars of `make kafka-jars`).",
		Example: "  sandbox broker --port 9092 --topic orders.confirmed:6",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			topics, err := parseTopics(flags.topics)
			if err != nil {
				return usageError{err}
			}
			ctx, cancel := untilEnded(cmd.Context())
			defer cancel()
			if flags.apache {
				return serveApache(ctx, std, flags, topics)
			}
			return serveEmbedded(ctx, std, flags, topics)
		},
	}
	c.Flags().BoolVar(&flags.apache, "apache", false, "a real Apache Kafka instead of the embedded broker")
	c.Flags().IntVar(&flags.port, "port", 0, "port on 127.0.0.1 (0: a free one)")
	c.Flags().StringVar(&flags.dir, "dir", "", "folder that keeps the data over several runs")
	c.Flags().StringArrayVar(&flags.topics, "topic", nil, "a topic to create, as name:partitions; may be repeated")
	return c
}

// parseTopics reads name:partitions.
func parseTopics(texts []string) (map[string]int32, error) {
	topics := make(map[string]int32, len(texts))
	for _, text := range texts {
		name, digits, found := strings.Cut(text, ":")
		n, err := strconv.ParseInt(digits, 10, 32)
		if !found || name == "" || err != nil || n < 1 {
			return nil, fmt.Errorf("--topic %q: want name:partitions, such as orders.confirmed:6", text)
		}
		topics[name] = int32(n)
	}
	return topics, nil
}

func serveEmbedded(ctx context.Context, std streams, flags brokerFlags, topics map[string]int32) error {
	b, err := broker.Start(broker.Options{Port: flags.port, Topics: topics, DataDir: flags.dir, Log: std.err})
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Fprintln(std.out, strings.Join(b.Addrs(), ","))
	<-ctx.Done()
	return nil
}

func serveApache(ctx context.Context, std streams, flags brokerFlags, topics map[string]int32) (err error) {
	b, err := apache.Start(ctx, apache.Options{Dir: flags.dir, Port: flags.port})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopped(ctx, b.Stop)) }()
	for topic, partitions := range topics {
		if err := orders.EnsureTopic(ctx, b.Addrs(), topic, partitions); err != nil {
			return err
		}
	}
	fmt.Fprintln(std.out, strings.Join(b.Addrs(), ","))
	select {
	case <-ctx.Done():
		return nil
	case <-b.Done():
		return errors.New("the broker ended by itself")
	}
}

// stopped runs an orderly end, whose time does not depend on the ended ctx.
func stopped(ctx context.Context, stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return stop(ctx)
}
