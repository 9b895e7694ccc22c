package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// watchPause is the pause between two looks at the batches: what they show is that much too short at most.
const watchPause = 5 * time.Millisecond

// emptier empties days beside a load and watches the batches.
type emptier struct {
	world    *World
	database string
	days     []span
	pause    time.Duration

	// What follows was found out.
	emptied, dropped int
	turns            []span // in which days were emptied
	whole            span   // with the pauses between
	looks            []look
	early            int // turns that began when the load was consumed already
	commits          []commit
	trouble          []string // what the log of billing says meanwhile
}

// look is what the batches did at one moment.
type look struct {
	at      time.Time
	waiting time.Duration // the longest wait for a table
	open    time.Duration // the longest transaction of a batch
}

// run is done beside the load.
func (e *emptier) run(ctx context.Context, m *measurement) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- e.watch(watching) }()
	err := e.turnEach(ctx, m)
	stop()
	if seen := <-watched; err == nil {
		err = seen
	}
	return err
}

func (e *emptier) turnEach(ctx context.Context, m *measurement) error {
	e.whole.from = time.Now()
	for _, s := range e.days {
		if err := sleep(ctx, e.pause); err != nil {
			e.early++ // the load is done; the day is emptied all the same
		}
		began := time.Now()
		t, err := e.world.turn(context.WithoutCancel(ctx), m, s)
		if err != nil {
			return err
		}
		e.emptied += t.Emptied
		e.dropped += t.Dropped
		e.turns = append(e.turns, span{began, time.Now()})
	}
	_ = sleep(ctx, e.pause)
	e.whole.to = time.Now()
	return nil
}

// A wait for a table is what emptying and dropping can cause; waits for rows are the protocol's own.
const lookAtBatches = `
SELECT coalesce((SELECT max(extract(epoch FROM clock_timestamp() - l.waitstart)) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
		WHERE NOT l.granted AND l.locktype = 'relation' AND a.datname = $1 AND a.application_name LIKE 'billing%' AND a.application_name <> 'billing-retention'), 0)::float8,
	coalesce((SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity
		WHERE datname = $1 AND application_name = 'billing'), 0)::float8`

// watch looks at the batches until ctx ends.
func (e *emptier) watch(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, e.world.postgres.URL("postgres"))
	if err != nil {
		return fmt.Errorf("watch the batches: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // its end is the end of the watch
	for sleep(ctx, watchPause) == nil {
		var waiting, open float64
		if err := conn.QueryRow(ctx, lookAtBatches, e.database).Scan(&waiting, &open); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watch the batches: %w", err)
		}
		seconds := float64(time.Second)
		e.looks = append(e.looks, look{time.Now(), time.Duration(waiting * seconds), time.Duration(open * seconds)})
	}
	return nil
}

// judge reads what the database and the log say afterwards.
func (e *emptier) judge(ctx context.Context, topic string) (err error) {
	if e.commits, err = e.world.books.commits(ctx, e.database, topic); err != nil {
		return err
	}
	content, err := os.ReadFile(e.world.logPath())
	if err != nil {
		return fmt.Errorf("read the log of billing: %w", err)
	}
	e.trouble = troubleIn(content, e.whole)
	return nil
}

// troubleIn returns the messages of warnings and errors within a time.
func troubleIn(log []byte, within span) (messages []string) {
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Time    time.Time `json:"time"`
			Level   string    `json:"level"`
			Message string    `json:"msg"`
			Error   string    `json:"error"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Level != "WARN" && line.Level != "ERROR" {
			continue
		}
		if !line.Time.Before(within.from) && !line.Time.After(within.to) {
			messages = append(messages, strings.TrimSuffix(line.Message+": "+line.Error, ": "))
		}
	}
	return messages
}

// emptying reports whether a moment lies in a turn that empties.
func (e *emptier) emptying(at time.Time) bool {
	return slices.ContainsFunc(e.turns, func(s span) bool { return !at.Before(s.from) && !at.After(s.to) })
}

// batches are the longest waits and transactions of batches, while days are emptied and beside.
func (e *emptier) batches() (waiting, with, without []time.Duration) {
	for _, l := range e.looks {
		if e.emptying(l.at) {
			waiting, with = append(waiting, l.waiting), append(with, l.open)
		} else {
			without = append(without, l.open)
		}
	}
	return waiting, with, without
}

// pauses are the times between commits that follow one another, likewise.
func (e *emptier) pauses() (with, without []time.Duration) {
	for i := 1; i < len(e.commits); i++ {
		from, to := e.commits[i-1].at, e.commits[i].at
		switch {
		case from.Before(e.whole.from) || to.After(e.whole.to):
		case e.emptying(from) || e.emptying(to):
			with = append(with, to.Sub(from))
		default:
			without = append(without, to.Sub(from))
		}
	}
	return with, without
}

// rows are those of the table.
func (e *emptier) rows(name, at string) []Row {
	waiting, with, without := e.batches()
	between, usually := e.pauses()
	of := func(figure string, all []time.Duration) Row {
		value := highest(all)
		return Row{Scenario: name, Figure: figure + ", ms, provider " + at, Billing: &value}
	}
	wait := of("longest wait of a batch for a table", waiting)
	wait = wait.atMost(delayGoal, wait.Billing, "ms")
	longest := of("longest batch while a day is emptied", with)
	more := max(0, *longest.Billing-highest(without))
	longest = longest.atMost(delayGoal, &more, "ms above the longest beside")
	gap := of("longest pause between commits meanwhile", between)
	longer := max(0, *gap.Billing-highest(usually))
	gap = gap.atMost(delayGoal, &longer, "ms above the longest beside")
	trouble := float64(len(e.trouble))
	errors := Row{Scenario: name, Figure: "warnings and errors of billing meanwhile, provider " + at, Billing: &trouble}.atMost(0, &trouble, "")
	return []Row{wait, longest, gap, errors}
}

// note says what was done.
func (e *emptier) note(own string) string {
	var took time.Duration
	for _, s := range e.turns {
		took = max(took, s.to.Sub(s.from))
	}
	text := fmt.Sprintf("%s: %d days emptied, %d of them dropped in the same turn; the longest `billing retention run` took %s",
		own, e.emptied, e.dropped, took.Round(time.Millisecond))
	if e.early > 0 {
		text += fmt.Sprintf("; the load had ended before %d of them", e.early)
	}
	if len(e.trouble) > 0 {
		text += "; billing said: " + strings.Join(slices.Compact(slices.Sorted(slices.Values(e.trouble))), ", ")
	}
	return text
}
