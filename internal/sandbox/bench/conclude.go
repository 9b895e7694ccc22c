package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/billing/internal/payment/paymenttest"
)

// warmUp is the part of a trickle at its beginning that is left out: connections are made, caches are cold.
const warmUp = 0.1

// conclude makes the figures, and holds the sums against what had to happen. Billing has ended.
func (m *measurement) conclude(ctx context.Context) error {
	commits, err := m.world.books.commits(ctx, m.database, m.load.topic)
	if err != nil {
		return err
	}
	meter, err := m.world.provider.meter(ctx)
	if err != nil {
		return err
	}
	ledger, err := m.world.provider.ledger(ctx)
	if err != nil {
		return err
	}
	counted, err := m.world.books.counted(ctx, m.database, m.group)
	if err != nil {
		return err
	}
	m.load.poison.discount(&counted, &ledger)
	m.run.Charges = len(commits)
	m.run.InFlight, m.run.Mean = meter.Most, meter.Mean()
	if len(commits) > 0 {
		m.run.Rate = wallRate(commits, meter)
		m.run.Seconds = float64(len(commits)) / m.run.Rate
		m.run.Steady = steady(commits)
	}
	if counted.received > 0 {
		m.run.CPU = float64(m.cpu.Microseconds()) / float64(counted.received)
	}
	if m.sent != nil {
		m.run.P50, m.run.P99 = latencies(m.sent, commits)
	}
	if m.limit > 0 && m.run.Charges < m.run.Unique {
		m.run.Void = brokenOff(ledger)
	} else {
		m.run.Void = wrong(m.load.expected.Unique, m.load.expected.Records, m.load.expected.Sums, counted, ledger, len(commits))
	}
	return nil
}

// wallRate is charges per second from the first request to the last commit.
func wallRate(commits []commit, meter Meter) float64 {
	return float64(len(commits)) / commits[len(commits)-1].at.Sub(time.Unix(0, meter.First)).Seconds()
}

// steady is the rate of commits between 5 % and 95 % of them; 0 where that is no time at all.
func steady(commits []commit) float64 {
	from, to := len(commits)/20, len(commits)*19/20
	if to <= from {
		return 0
	}
	seconds := commits[to].at.Sub(commits[from].at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(to-from) / seconds
}

// latencies are median and 99th percentile from send to commit, in ms, the warm-up left out.
func latencies(sent map[int64]time.Time, commits []commit) (p50, p99 float64) {
	type one struct {
		sent time.Time
		took time.Duration
	}
	all := make([]one, 0, len(commits))
	for _, c := range commits {
		if at, found := sent[c.order]; found {
			all = append(all, one{at, c.at.Sub(at)})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return a.sent.Compare(b.sent) })
	all = all[int(float64(len(all))*warmUp):]
	slices.SortFunc(all, func(a, b one) int { return int(a.took - b.took) })
	at := func(q float64) float64 {
		if len(all) == 0 {
			return 0
		}
		return float64(all[int(q*float64(len(all)-1))].took) / float64(time.Millisecond)
	}
	return at(.5), at(.99)
}

// wrong says which sums of a whole run are wrong.
func wrong(unique, records int, sums map[string]int64, n counted, l paymenttest.Ledger, charges int) string {
	var faults []string
	hold := func(what string, is, want int64) {
		if is != want {
			faults = append(faults, fmt.Sprintf("%s %d, want %d", what, is, want))
		}
	}
	hold("charges", int64(charges), int64(unique))
	hold("captured", n.captured, int64(unique))
	hold("received", n.received, int64(records))
	hold("processed", n.processed, int64(unique))
	hold("duplicates", n.duplicates, int64(records-unique))
	hold("dead letters", n.letters, 0)
	hold("requests", l.Posts, int64(unique))
	hold("captures", l.Captures, int64(unique))
	hold("double charges", l.DoubleCharges, 0)
	for currency, minor := range sums {
		if taken := l.CapturedMinor[currency]; taken != strconv.FormatInt(minor, 10) {
			faults = append(faults, fmt.Sprintf("%s captured in minor units: %q, want %d", currency, taken, minor))
		}
	}
	slices.Sort(faults)
	return strings.Join(faults, "; ")
}

// brokenOff says which sums are wrong of a run that was not to be finished.
func brokenOff(l paymenttest.Ledger) string {
	if l.DoubleCharges != 0 || l.RepeatedPosts != 0 {
		return fmt.Sprintf("double charges %d, repeated requests %d, want none", l.DoubleCharges, l.RepeatedPosts)
	}
	return ""
}
