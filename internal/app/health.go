package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// workerSilence is after how long without a turn of the retry worker something
// is wrong with it: many times its longest pause.
const workerSilence = time.Minute

func healthCommand(p Process) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask the running service whether it is ready",
		Long:  "Asks /readyz at ADMIN_ADDR on this machine: exit code 0 when it is ready, 1 when it is not or does not answer.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := LoadAdmin(p.Environ)
			if err != nil {
				return usageError{fmt.Errorf("configuration:\n%w", err)}
			}
			if err := admin.CheckHealth(cmd.Context(), settings.Addr); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
}

// admin returns the admin API's configuration.
func (s *Settings) admin() admin.Config {
	return admin.Config{Addr: s.Admin.Addr, Token: s.Admin.Token, ReadToken: s.Admin.ReadToken, Insecure: s.Admin.Insecure}
}

// checks are the components that health shows. Readiness depends on all but the relay
// and retention.
func (a *App) checks() []admin.Check {
	checks := []admin.Check{
		{Name: "database", Run: a.checkDatabase},
		{Name: "kafka", Run: a.checkKafka},
		{Name: "topic", Run: a.checkTopic},
		{Name: "provider", Run: a.checkProvider},
		{Name: "worker", Run: a.checkWorker},
		{Name: "retention", Run: a.checkRetention},
	}
	if a.relay != nil {
		checks = append(checks, admin.Check{Name: "relay", Run: a.checkRelay})
	}
	return checks
}

func (a *App) checkDatabase(ctx context.Context) admin.Verdict {
	if err := a.store.Ping(ctx); err != nil {
		a.log.WarnContext(ctx, "health: database", "error", err)
		// Shown without a token: the error would name host and user.
		return admin.Verdict{Status: admin.StatusFail, Reason: "does not answer; the log says why"}
	}
	return admin.Verdict{Status: admin.StatusOK}
}

func (a *App) checkKafka(ctx context.Context) admin.Verdict {
	status := a.consumer.Status()
	switch {
	case status.Fatal != "":
		return admin.Verdict{Status: admin.StatusFail, Reason: status.Fatal}
	case !status.Running:
		return admin.Verdict{Status: admin.StatusFail, Reason: "not consuming: starting or draining"}
	}
	return kafkaVerdict(&status, a.consumer.Check(ctx))
}

// kafkaVerdict tells of a consumer that runs, and of what the brokers were found to be.
func kafkaVerdict(status *kafka.Status, brokers error) admin.Verdict {
	found := []admin.Verdict{batchVerdict(status.Partitions)}
	if p := status.Operator; p != nil {
		found = append(found, admin.Verdict{Status: admin.StatusWarn, Reason: "intake is paused by " + p.By + ": " + p.Reason, Since: p.Since})
	}
	if brokers != nil {
		found = append(found, admin.Verdict{Status: admin.StatusFail, Reason: brokers.Error(), Since: status.BrokerErrorSince})
	}
	return admin.Worst(found...)
}

// failuresTold is how often in a row the batches of a partition have failed before that is
// told: with the pauses between them some six seconds, and longer where each waits for a lock.
const failuresTold = 8

// batchVerdict tells of partitions that do not get on though everything answers, as with a
// table that refuses their rows. Nothing of them is lost, and they are tried again for ever.
func batchVerdict(partitions []kafka.PartitionStatus) admin.Verdict {
	var stuck []string
	for i := range partitions {
		if p := &partitions[i]; p.Failures >= failuresTold {
			stuck = append(stuck, strconv.Itoa(int(p.Partition)))
		}
	}
	if len(stuck) == 0 {
		return admin.Verdict{Status: admin.StatusOK}
	}
	return admin.Verdict{Status: admin.StatusWarn, Reason: "batches fail again and again in partitions " + strings.Join(stuck, ", ") +
		": /api/v1/consumer and the log say why"}
}

func (a *App) checkProvider(context.Context) admin.Verdict { return providerVerdict(a.gate.State()) }

// providerVerdict tells every cause that keeps the gate closed: what refuses us may fail as well.
func providerVerdict(s domain.GateState) admin.Verdict {
	fails := admin.Verdict{Status: admin.StatusFail, Reason: "the provider fails, intake is paused: " + s.Reason, Since: s.Since}
	switch s.Cause {
	case domain.CauseRefused:
		refuses := admin.Verdict{Status: admin.StatusFail, Reason: "the provider refuses us, intake is paused: " + s.Reason, Since: s.Since}
		if s.Failing != "" {
			refuses.More = []string{"it fails, too: " + s.Failing}
		}
		return refuses
	case domain.CauseFailing:
		return fails
	default:
		return admin.Verdict{Status: admin.StatusOK, Since: s.Since}
	}
}

func (a *App) checkWorker(context.Context) admin.Verdict {
	seen := a.worker.LastTurn()
	if !seen.IsZero() && a.clock.Now().Sub(seen) > workerSilence {
		return admin.Verdict{Status: admin.StatusFail, Reason: "the retry worker does not turn", Since: seen}
	}
	return admin.Verdict{Status: admin.StatusOK}
}

// alive reports a poll loop that stands still: nothing but a restart helps.
func (a *App) alive() error {
	status := a.consumer.Status()
	if status.Running && !status.LastPoll.IsZero() && a.clock.Now().Sub(status.LastPoll) > a.settings.maxPollInterval() {
		return errors.New("the poll loop has stood still since " + status.LastPoll.UTC().Format(time.RFC3339))
	}
	return nil
}

// consumerStatus translates the consumer's state for the admin API.
func (a *App) consumerStatus() admin.ConsumerStatus {
	s := a.consumer.Status()
	view := admin.ConsumerStatus{
		Topic: s.Topic, Group: s.GroupID, Running: s.Running, LastPoll: s.LastPoll,
		OffsetStore: a.settings.Flow.OffsetStore,
		BrokerError: s.BrokerError, BrokerErrorSince: s.BrokerErrorSince, Fatal: s.Fatal, LeavingLanes: s.Leaving,
	}
	if closed, reason, since := a.gate.Closed(); closed {
		view.Pauses = append(view.Pauses, admin.Pause{By: "provider", Reason: reason, Since: since})
	}
	if p := s.Operator; p != nil {
		view.Pauses = append(view.Pauses, admin.Pause{By: p.By, Reason: p.Reason, Since: p.Since})
	}
	for _, p := range s.Partitions {
		view.Partitions = append(view.Partitions, admin.PartitionStatus{
			Partition: p.Partition, State: string(p.State), Queued: p.Queued, Batches: p.Batches, InFlight: p.InFlight,
			Done: p.Done, Committed: p.Committed, HighWatermark: p.HighWatermark, Lag: p.Lag,
			Paused: p.Paused, Failures: p.Failures, LastError: p.LastError,
		})
	}
	return view
}
