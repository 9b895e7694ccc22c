package app

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestNoTroubleOfRetentionHidesAnother(t *testing.T) {
	t.Parallel()
	s := Settings{Flow: FlowSettings{RetentionMode: "partition", RetentionRange: "day", DedupRetention: 168 * time.Hour}}
	c := s.retention("")
	const (
		silent  = "no instance has done it for 11m0s"
		fails   = "its turns fail; the log of the instance that does it says why"
		blocked = "what is due is kept, since something unfinished or unread reaches into it: /api/v1/dedup/stats or billing retention run --dry-run says what"
		another = "whoever did it last keeps for 24h0m0s what this instance is to keep for 168h0m0s: the same DEDUP_RETENTION must hold for all that share a database"
	)
	held := func(wanted, kept string) string {
		return "whoever did it last is to keep for " + wanted + " only, and keeps for " + kept + " as before: set its DEDUP_RETENTION back, " +
			"or confirm it by billing retention run --shorten"
	}
	since := noon.Add(-11 * time.Minute)
	for name, test := range map[string]struct {
		report domain.RetentionReport
		want   []string
		since  time.Time
	}{
		"all is well":              {domain.RetentionReport{SucceededAt: noon, Retention: c.Retention}, nil, time.Time{}},
		"another length":           {domain.RetentionReport{SucceededAt: noon, Retention: 24 * time.Hour}, []string{another}, time.Time{}},
		"blocked":                  {domain.RetentionReport{SucceededAt: noon, Retention: c.Retention, BlockedSince: noon.Add(-25 * time.Hour)}, []string{blocked}, noon.Add(-25 * time.Hour)},
		"blocked for a short time": {domain.RetentionReport{SucceededAt: noon, Retention: c.Retention, BlockedSince: noon.Add(-23 * time.Hour)}, nil, time.Time{}},
		"another length and blocked": {
			domain.RetentionReport{SucceededAt: noon, Retention: 24 * time.Hour, BlockedSince: noon.Add(-25 * time.Hour)},
			[]string{blocked, another},
			noon.Add(-25 * time.Hour),
		},
		"held back, here":  {domain.RetentionReport{SucceededAt: noon, Retention: 300 * time.Hour, Wanted: c.Retention}, []string{held("168h0m0s", "300h0m0s")}, time.Time{}},
		"held back, there": {domain.RetentionReport{SucceededAt: noon, Retention: c.Retention, Wanted: time.Hour}, []string{held("1h0m0s", "168h0m0s")}, time.Time{}},
		"held back, between others": {
			domain.RetentionReport{SucceededAt: noon, Retention: 24 * time.Hour, Wanted: time.Hour}, []string{held("1h0m0s", "24h0m0s"), another}, time.Time{},
		},
		"silence, another length and blocked": {
			domain.RetentionReport{SucceededAt: since, Retention: 24 * time.Hour, BlockedSince: noon.Add(-25 * time.Hour)},
			[]string{silent, blocked, another},
			since,
		},
		"failures, another length and blocked": {
			domain.RetentionReport{SucceededAt: since, Retention: 24 * time.Hour, BlockedSince: noon.Add(-25 * time.Hour), Error: "refused"},
			[]string{fails, blocked, another},
			since,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told(t, retentionVerdict(test.report, true, noon, noon, &c), admin.StatusWarn, test.since, test.want...)
		})
	}
}

// told holds a verdict to what it should say.
func told(t *testing.T, v admin.Verdict, status admin.Status, since time.Time, reasons ...string) {
	t.Helper()
	if len(reasons) == 0 {
		require.Equal(t, admin.Verdict{Status: admin.StatusOK}, v)
		return
	}
	require.Equal(t, status, v.Status)
	require.Equal(t, since, v.Since)
	require.Equal(t, reasons, append([]string{v.Reason}, v.More...))
	for _, reason := range reasons {
		require.LessOrEqual(t, len(reason), 200, "it would be cut")
	}
}

func TestNoTroubleOfTheRelayHidesAnother(t *testing.T) {
	t.Parallel()
	old, young := noon.Add(-2*time.Minute), noon.Add(-time.Second)
	const refused = "3 messages were refused by the brokers and lie in outbox_refused"
	for name, test := range map[string]struct {
		status kafka.RelayStatus
		want   []string
		since  time.Time
	}{
		"all is well": {kafka.RelayStatus{Backlog: domain.Backlog{Rows: 1, Oldest: young}}, nil, time.Time{}},
		"refused":     {kafka.RelayStatus{Backlog: domain.Backlog{Refused: 3}}, []string{refused}, time.Time{}},
		"late and refused": {
			kafka.RelayStatus{Backlog: domain.Backlog{Rows: 7, Oldest: old, Refused: 3}},
			[]string{"7 messages wait to be published, the oldest for 2m0s", refused},
			old,
		},
		"failing and refused": {
			kafka.RelayStatus{Error: "postgres://user@host", ErrorSince: young, Backlog: domain.Backlog{Rows: 7, Oldest: old, Refused: 3}},
			[]string{"nothing is published, the log says why; 7 messages wait, the oldest for 2m0s", refused},
			young,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told(t, relayVerdict(test.status, noon), admin.StatusWarn, test.since, test.want...)
		})
	}
}

func TestNoTroubleWithKafkaHidesAnother(t *testing.T) {
	t.Parallel()
	const paused, stuck = "intake is paused by ann: the provider moves", "batches fail again and again in partitions 2: /api/v1/consumer and the log say why"
	running := kafka.Status{Running: true, Partitions: []kafka.PartitionStatus{{Partition: 1, Failures: 7}}}
	told(t, kafkaVerdict(&running, nil), admin.StatusOK, time.Time{})
	running.Operator = &kafka.Pause{By: "ann", Reason: "the provider moves", Since: noon}
	told(t, kafkaVerdict(&running, nil), admin.StatusWarn, noon, paused)
	running.Partitions = append(running.Partitions, kafka.PartitionStatus{Partition: 2, Failures: 8})
	told(t, kafkaVerdict(&running, nil), admin.StatusWarn, noon, stuck, paused)
	running.BrokerErrorSince = noon.Add(-time.Minute)
	told(t, kafkaVerdict(&running, errors.New("kafka: away")), admin.StatusFail, noon.Add(-time.Minute), "kafka: away", stuck, paused)
}

func TestAProviderThatRefusesUsMayFailAsWell(t *testing.T) {
	t.Parallel()
	const refuses, fails = "the provider refuses us, intake is paused: HTTP 401", "it fails, too: most charges end without an answer"
	s := domain.GateState{Closed: true, Cause: domain.CauseRefused, Reason: "HTTP 401", Since: noon}
	told(t, providerVerdict(s), admin.StatusFail, noon, refuses)
	s.Failing = "most charges end without an answer"
	told(t, providerVerdict(s), admin.StatusFail, noon, refuses, fails)
	s = domain.GateState{Closed: true, Cause: domain.CauseFailing, Reason: "HTTP 500", Since: noon}
	told(t, providerVerdict(s), admin.StatusFail, noon, "the provider fails, intake is paused: HTTP 500")
	told(t, providerVerdict(domain.GateState{}), admin.StatusOK, time.Time{})
}
