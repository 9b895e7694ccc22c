package apache

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/sandbox/process"
)

// launch starts the node on its configuration and waits until it answers. On an error no process is left.
func (b *Broker) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	proc, err := process.Start(b.javaSpec("kafka.Kafka", propertiesFile))
	if err != nil {
		return err
	}

	if err := b.awaitReady(ctx, proc); err != nil {
		return errors.Join(err, proc.Kill())
	}

	b.proc = proc

	return nil
}

// awaitReady asks the broker for its metadata until it answers, ends, or ctx ends.
func (b *Broker) awaitReady(ctx context.Context, proc *process.Process) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RetryTimeout(askTimeout))
	if err != nil {
		return fmt.Errorf("client for the readiness check: %w", err)
	}
	defer client.Close()

	admin := kadm.NewClient(client)
	tick := time.NewTicker(readyPoll)

	defer tick.Stop()

	for {
		if b.answers(ctx, admin) {
			return nil
		}

		select {
		case <-proc.Done():
			return b.died(proc)
		case <-ctx.Done():
			return fmt.Errorf("wait for the broker's answer: %w: %s", context.Cause(ctx), proc.Tail())
		case <-tick.C:
		}
	}
}

// answers reports whether the broker is registered with its controller, takes requests and coordinates groups. The topic behind the
// groups is created by the first question for one; asked here, no test's first consumer has to wait or to retry for it.
func (b *Broker) answers(ctx context.Context, admin *kadm.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	meta, err := admin.BrokerMetadata(ctx)
	if err != nil || len(meta.Brokers) == 0 || meta.Controller < 0 {
		return false
	}

	// A group belongs to the partition that the hash of its name gives: these four to one each.
	groups, err := admin.DescribeGroups(ctx, "a", "b", "c", "d")
	if err != nil || len(groups) != offsetsPartitions {
		return false
	}

	for _, group := range groups {
		if group.Err != nil && !errors.Is(group.Err, kerr.GroupIDNotFound) {
			return false
		}
	}

	return true
}

// died explains the end of a broker that never answered.
func (b *Broker) died(proc *process.Process) error {
	err := fmt.Errorf("broker ended (%w): %s", orExited(proc.Err()), proc.Tail())
	if strings.Contains(proc.Tail(), "Address already in use") {
		return errors.Join(errPortTaken, err)
	}

	return err
}

// orExited gives an orderly end a name.
func orExited(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}

	return err
}

// javaSpec is the JVM for a Kafka class: bounded heap; quick to start rather than quick in the long run.
func (b *Broker) javaSpec(class string, args ...string) process.Spec {
	flags := []string{
		"-Xms64m", "-Xmx" + strconv.Itoa(b.options.HeapMB) + "m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError",
		"-Djava.awt.headless=true", "-Djava.io.tmpdir=" + tempFolder, "-Dlog4j2.configurationFile=" + logFile,
		// Not the jars' glob alone: the class path is one argument, which no shell expands.
		"-cp", filepath.Join(b.libs, "*"), class,
	}

	return process.Spec{
		Path: b.java, Args: append(flags, args...), Dir: b.dir, Log: b.options.Log,
		// A broker whose owner is gone has nobody to be orderly for.
		DeathSignal: syscall.SIGKILL,
	}
}
