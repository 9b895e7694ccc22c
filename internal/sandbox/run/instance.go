package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// readyTimeout bounds the start of an instance: migrations, the first assignment, a busy machine.
	readyTimeout = 60 * time.Second
	// readyPoll is the pause between two looks at readiness.
	readyPoll = 50 * time.Millisecond
	// instanceGrace is above the SHUTDOWN_TIMEOUT of 30 s.
	instanceGrace = 40 * time.Second
	// pageTimeout bounds one question to the admin API.
	pageTimeout = 10 * time.Second
	loopback    = "http://127.0.0.1:"
)

// errEndedWell stands for exit code 0 of a process that was to go on.
var errEndedWell = errors.New("exit status 0")

// instance is one billing process, and those that follow it after a kill.
type instance struct {
	number int
	parts  *parts
	base   string // of its admin API
	log    *os.File

	mu     sync.Mutex
	proc   *process.Process
	ending bool // its end is our doing
}

func startInstance(p *parts, number int) (*instance, error) {
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	log, err := p.log(fmt.Sprintf("billing-%d.log", number))
	if err != nil {
		return nil, err
	}
	p.onStop(func(context.Context) error { return log.Close() })
	i := &instance{number: number, parts: p, base: loopback + strconv.Itoa(ports[0]), log: log}
	if err := i.start(); err != nil {
		return nil, err
	}
	p.onStop(func(context.Context) error { return i.kill() })
	return i, nil
}

// url is the base of its admin API.
func (i *instance) url() string { return i.base }

// start starts the process, which must not end unless it is told to.
func (i *instance) start() error {
	p := i.parts
	o := p.options
	proc, err := process.Start(process.Spec{
		Path: o.Billing, Args: []string{"serve"}, Dir: p.dir, Log: i.log, DeathSignal: syscall.SIGKILL,
		Env: o.childEnviron(
			"KAFKA_BROKERS="+strings.Join(p.brokers, ","), "KAFKA_TOPIC="+o.Topic, "KAFKA_GROUP_ID="+o.Group,
			"KAFKA_EVENTS_TOPIC="+eventsTopic(o.Topic), "KAFKA_DLQ_TOPIC="+dlqTopic(o.Topic),
			"DATABASE_URL="+p.url, "PAYMENT_URL="+p.provider.URL(),
			"ADMIN_ADDR="+strings.TrimPrefix(i.base, "http://"), "ADMIN_INSECURE=true",
		),
	})
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.proc, i.ending = proc, false
	i.mu.Unlock()
	go func() {
		<-proc.Done()
		i.mu.Lock()
		defer i.mu.Unlock()
		if !i.ending {
			p.fail(fmt.Errorf("billing instance %d ended by itself: %w; its last lines (%s):\n%s",
				i.number, cmp.Or(proc.Err(), errEndedWell), i.log.Name(), proc.Tail()))
		}
	}()
	return nil
}

// own marks the end to come as ours.
func (i *instance) own() *process.Process {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ending = true
	return i.proc
}

// kill ends it with -9 and waits until it is gone.
func (i *instance) kill() error { return i.own().Kill() }

// stop asks it to end; the error says what was not in order.
func (i *instance) stop(ctx context.Context) error {
	proc := i.own()
	if err := proc.Stop(ctx, instanceGrace, syscall.SIGTERM); err != nil {
		return err
	}
	if err := proc.Err(); err != nil {
		return fmt.Errorf("instance %d, asked to end: %w", i.number, err)
	}
	return nil
}

// awaitReady waits until it is ready, at most a minute.
func (i *instance) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout,
		fmt.Errorf("billing instance %d is not ready after %s, see %s/readyz and %s", i.number, readyTimeout, i.url(), i.log.Name()))
	defer cancel()
	for !i.ready(ctx) {
		if err := sleep(ctx, readyPoll); err != nil {
			return err
		}
	}
	return nil
}

func (i *instance) ready(ctx context.Context) bool {
	response, err := get(ctx, i.url()+"/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// statsURL is the page to look at.
func (i *instance) statsURL() string { return i.url() + "/api/v1/dedup/stats?window=all" }

// stats asks its statistics page.
func (i *instance) stats(ctx context.Context) (Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	s := Stats{Instance: i.url()}
	response, err := get(ctx, i.statsURL())
	if err != nil {
		return s, fmt.Errorf("statistics page: %w", err)
	}
	defer response.Body.Close()
	var page struct {
		Received       int64 `json:"received"`
		Processed      int64 `json:"processed"`
		Recovered      int64 `json:"recovered"`
		Invalid        int64 `json:"invalid"`
		Captured       int64 `json:"captured"`
		Declined       int64 `json:"declined"`
		DuplicateOrder int64 `json:"duplicate_order"`
		Discarded      int64 `json:"discarded"`
		Unfinished     int64 `json:"unfinished"`
		Parked         int64 `json:"parked"`
		Duplicates     struct {
			Redelivered int64 `json:"redelivered"`
			Republished int64 `json:"republished"`
			Conflicting int64 `json:"conflicting"`
			Delays      struct {
				Buckets []struct {
					UpTo  string `json:"up_to"`
					Count int64  `json:"count"`
				} `json:"buckets"`
				Longer    int64 `json:"longer"`
				Forgotten int64 `json:"forgotten"`
			} `json:"delays"`
		} `json:"duplicates"`
	}
	if response.StatusCode != http.StatusOK {
		return s, fmt.Errorf("statistics page %s: %s", i.statsURL(), response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return s, fmt.Errorf("statistics page %s: %w", i.statsURL(), err)
	}
	s.Unfinished, s.Parked = page.Unfinished, page.Parked
	late := page.Duplicates.Delays
	s.Delays = map[string]int64{"longer": late.Longer, "forgotten": late.Forgotten}
	for _, b := range late.Buckets {
		s.Delays[b.UpTo] = b.Count
	}
	s.Counters = Counters{
		Received: page.Received, Processed: page.Processed, Recovered: page.Recovered,
		Redelivered: page.Duplicates.Redelivered, Republished: page.Duplicates.Republished, Conflicting: page.Duplicates.Conflicting,
		Invalid: page.Invalid, Captured: page.Captured, Declined: page.Declined, DuplicateOrder: page.DuplicateOrder, Discard: page.Discarded,
	}
	return s, nil
}

// lanes asks which partitions it has, and how many records of each are in flight.
func (i *instance) lanes(ctx context.Context) (map[int32]int, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	response, err := get(ctx, i.url()+"/api/v1/consumer")
	if err != nil {
		return nil, fmt.Errorf("consumer page: %w", err)
	}
	defer response.Body.Close()
	var page struct {
		Assignment []struct {
			Partition int32 `json:"partition"`
			InFlight  int   `json:"in_flight"`
		} `json:"assignment"`
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("consumer page of %s: %s", i.url(), response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return nil, fmt.Errorf("consumer page of %s: %w", i.url(), err)
	}
	lanes := make(map[int32]int, len(page.Assignment))
	for _, a := range page.Assignment {
		lanes[a.Partition] = a.InFlight
	}
	return lanes, nil
}

// get asks a page on loopback; the caller closes the body and bounds ctx.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	return http.DefaultClient.Do(request)
}
