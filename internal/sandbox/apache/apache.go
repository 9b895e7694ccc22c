package apache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// startTimeout bounds the way from the start of the JVM to the first answer; 2 to 3 s on two quiet cores, 10 s on busy ones.
	startTimeout = 90 * time.Second
	// formatTimeout bounds the formatting of the storage, a JVM of about a second.
	formatTimeout = 60 * time.Second
	// stopGrace is how long a broker may take to write down its state after SIGTERM.
	stopGrace = 20 * time.Second
	// readyPoll is the pause between two questions whether the broker answers.
	readyPoll = 50 * time.Millisecond
	// askTimeout bounds one such question.
	askTimeout = 2 * time.Second
	// portTries is how often new ports are chosen when another process has taken one meanwhile.
	portTries = 3
)

// errPortTaken is returned by launch when the broker found a port in use.
var errPortTaken = errors.New("port in use")

// Broker is a running (or, between Kill and Restart, a dead) Apache Kafka node. It is safe for concurrent use.
type Broker struct {
	options    Options
	java, libs string
	dir        string
	temporary  bool
	port       int

	mu   sync.Mutex
	proc *process.Process
}

// Start starts a broker and returns once it answers clients. It ends early, leaving nothing behind, when ctx does. The broker itself lives
// until Stop, or until this process dies (Linux).
func Start(ctx context.Context, options Options) (*Broker, error) {
	b := &Broker{options: options.withDefaults()}

	var err error
	if b.java, err = findJava(ctx, options.Java); err != nil {
		return nil, err
	}

	if b.libs, err = findLibs(options.Libs); err != nil {
		return nil, err
	}

	if err := b.makeDir(); err != nil {
		return nil, err
	}

	if err := b.startOnFreePorts(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start apache kafka: %w", err), b.clean())
	}

	return b, nil
}

// makeDir makes the folder of the data; an absolute one, as the broker works in it.
func (b *Broker) makeDir() error {
	var err error

	if b.temporary = b.options.Dir == ""; b.temporary {
		b.dir, err = process.TempDir("", "billingkafka")

		return err
	}

	if b.dir, err = filepath.Abs(b.options.Dir); err != nil {
		return fmt.Errorf("kafka data folder: %w", err)
	}

	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return fmt.Errorf("kafka data folder: %w", err)
	}

	return nil
}

// startOnFreePorts formats the storage and starts the broker, with other ports when one is taken between choice and use.
func (b *Broker) startOnFreePorts(ctx context.Context) error {
	var err error

	for range portTries {
		if err = b.configure(); err != nil {
			return err
		}

		if err = b.format(ctx); err != nil {
			return err
		}

		if err = b.launch(ctx); !errors.Is(err, errPortTaken) || b.options.Port != 0 {
			return err
		}
	}

	return err
}

// configure chooses the ports and writes the configuration.
func (b *Broker) configure() error {
	ports, err := process.FreePorts(2)
	if err != nil {
		return err
	}

	b.port = ports[0]
	if b.options.Port != 0 {
		b.port = b.options.Port
		// Checked before the start, as another broker there would answer in this one's place.
		if err := process.CheckPort(b.port); err != nil {
			return err
		}
	}

	if err := os.MkdirAll(filepath.Join(b.dir, tempFolder), 0o700); err != nil {
		return fmt.Errorf("kafka temporary folder: %w", err)
	}

	return writeConfig(b.dir, properties(b.options, b.port, ports[1]))
}

// format prepares the storage of a new folder; that of an earlier broker is left as it is.
func (b *Broker) format(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, formatTimeout)
	defer cancel()

	_, err := process.Run(ctx, b.javaSpec("kafka.tools.StorageTool", "format", "--ignore-formatted", "--standalone",
		"--cluster-id", clusterID, "--config", propertiesFile))
	if err != nil {
		return fmt.Errorf("format storage: %w", err)
	}

	return nil
}

// Addrs are the broker's addresses for clients, the same over its whole life.
func (b *Broker) Addrs() []string { return []string{loopback(b.port)} }

// Dir is the folder of data and configuration.
func (b *Broker) Dir() string { return b.dir }

// PID is the process id of the broker's JVM.
func (b *Broker) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.proc.PID()
}

// Done is closed when the present JVM has ended, by whatever means; after Restart ask again.
func (b *Broker) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.proc.Done()
}

// Kill ends the broker as a crash would. The data stays for Restart.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.proc.Kill()
}

// Restart starts the broker again on the same data and port, after an orderly stop where it still runs. It returns once the broker answers.
func (b *Broker) Restart(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	// A broker that had to be killed can still be started again: that is what its log is for.
	if err := b.proc.Stop(ctx, stopGrace, syscall.SIGTERM); err != nil && !errors.Is(err, process.ErrKilled) {
		return fmt.Errorf("restart apache kafka: %w", err)
	}

	if err := b.launch(ctx); err != nil {
		return fmt.Errorf("restart apache kafka: %w", err)
	}

	return nil
}

// Stop ends the broker in order, by force where ctx ends or 20 s pass first, and removes a temporary folder. It may be called again.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if err := b.proc.Stop(ctx, stopGrace, syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("stop apache kafka: %w", err), b.clean())
	}

	return b.clean()
}

// clean removes a temporary folder.
func (b *Broker) clean() error {
	if !b.temporary {
		return nil
	}

	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("remove kafka data: %w", err)
	}

	return nil
}
