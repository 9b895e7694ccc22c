package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// publish brings one batch to its end, and reports whether there was one.
func (r *Relay) publish(ctx context.Context) (some bool, err error) {
	if r.pending == nil {
		if r.pending, err = r.read(ctx); err != nil || r.pending == nil {
			return false, err
		}
	}
	p := r.pending
	if err := r.deliver(ctx, p); err != nil {
		return true, err
	}
	domain.Reach(ctx, r.faults, domain.InRelay)
	ctx, cancel := context.WithTimeout(ctx, outboxTimeout)
	defer cancel()
	r.pending = nil // if the cursor does not move, it is read again
	if err := r.outbox.Move(ctx, p.batch, p.refused); err != nil {
		return true, err
	}
	r.count(ctx, p)
	return true, nil
}

// read takes the next batch, or nil when there is none.
func (r *Relay) read(ctx context.Context) (*pending, error) {
	ctx, cancel := context.WithTimeout(ctx, outboxTimeout)
	defer cancel()
	batch, err := r.outbox.Next(ctx)
	if err != nil || len(batch) == 0 {
		return nil, err
	}
	p := &pending{batch: batch}
	for i := range batch {
		if r.cfg.Topics[batch[i].Kind] != "" {
			p.open = append(p.open, i)
		}
	}
	return p, nil
}

// deliver sends what is open. What a broker refuses may have been refused for its
// neighbours in the same request: it is sent once more by itself, and only if it
// is refused then, too, is it given up.
func (r *Relay) deliver(ctx context.Context, p *pending) error {
	var suspects, left []int
	var last error
	sent := p.open
	for i, err := range r.send(ctx, p, sent) {
		switch at := sent[i]; {
		case err == nil:
		case blame(err) == theRecord:
			suspects = append(suspects, at)
		case r.barred(p, at, err):
			p.refuse(at, r.topicOf(p, at), err)
		default:
			left, last = append(left, at), err
		}
	}
	for n, at := range suspects {
		err := r.send(ctx, p, suspects[n:n+1])[0]
		switch {
		case err == nil:
		case blame(err) == theRecord:
			p.refuse(at, r.topicOf(p, at), err)
		default:
			left, last = append(left, at), err
		}
	}
	p.open = left
	if len(left) > 0 {
		return fmt.Errorf("publish %d of %d messages to %s: %w", len(left), len(p.batch), r.topicOf(p, left[0]), last)
	}
	return nil
}

// send hands messages to the client and waits for what became of each.
func (r *Relay) send(ctx context.Context, p *pending, which []int) []error {
	messages := make([]*confluent.Message, len(which))
	for i, at := range which {
		messages[i] = produced(r.topicOf(p, at), &p.batch[at].Message)
	}
	errs := r.sender.send(ctx, messages)
	for i, err := range errs {
		if err == nil {
			delete(r.forbidden, r.topicOf(p, which[i]))
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return blame(err) == theTopic }) {
		// The client would go on to refuse by what it was told: a new one asks again.
		if err := r.sender.close(); err != nil {
			r.logger.WarnContext(ctx, "relay", "error", err)
		}
	}
	return errs
}

func (r *Relay) topicOf(p *pending, at int) string { return r.cfg.Topics[p.batch[at].Kind] }

// barred reports whether the topic has refused us for so long that its messages are
// passed over: that is somebody's decision then, and no moment between two of them.
func (r *Relay) barred(p *pending, at int, err error) bool {
	if blame(err) != theTopic {
		return false
	}
	topic, now := r.topicOf(p, at), r.clock.Now()
	since, known := r.forbidden[topic]
	if !known {
		r.forbidden[topic], since = now, now
	}
	return now.Sub(since) >= r.cfg.Patience
}

// refuse marks a message that is not to be published.
func (p *pending) refuse(at int, topic string, err error) {
	p.refused = append(p.refused, domain.Refusal{Position: p.batch[at].Position, Topic: topic, Reason: err.Error()})
}

// count makes known what a batch came to.
func (r *Relay) count(ctx context.Context, p *pending) {
	for _, refusal := range p.refused {
		r.logger.ErrorContext(ctx, "relay: a message is refused and kept aside in outbox_refused", "topic", refusal.Topic,
			"reason", refusal.Reason, "transaction", refusal.Position.Transaction, "id", refusal.Position.ID)
	}
	published := map[domain.MessageKind]int64{}
	for i := range p.batch {
		if kind := p.batch[i].Kind; r.cfg.Topics[kind] != "" {
			published[kind]++
		}
	}
	refused := map[domain.MessageKind]int64{}
	for _, refusal := range p.refused {
		for i := range p.batch {
			if p.batch[i].Position == refusal.Position {
				published[p.batch[i].Kind]--
				refused[p.batch[i].Kind]++
			}
		}
	}
	r.metrics.told(ctx, published, refused)
}

// produced returns the message as the client takes it. Nil and empty stay what they are.
func produced(topic string, m *domain.Message) *confluent.Message {
	message := &confluent.Message{
		TopicPartition: confluent.TopicPartition{Topic: &topic, Partition: confluent.PartitionAny},
		Key:            m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		message.Headers = append(message.Headers, confluent.Header{Key: h.Key, Value: h.Value})
	}
	return message
}

// RelayStatus is what the relay is doing at one moment. It is a copy.
type RelayStatus struct {
	// Running is set from the beginning of Run to its end.
	Running bool
	// Leading is set while this instance is the one that publishes.
	Leading bool
	// LastTurn is when a turn last ended well; zero before the first.
	LastTurn time.Time
	// Error is why nothing is published at present, and ErrorSince since when; empty while all is well.
	Error      string
	ErrorSince time.Time
	// Backlog is as it was counted within the last seconds; of a relay that does not lead it is empty.
	Backlog domain.Backlog
}

// Status returns what the relay is doing now. Safe to call at any time.
func (r *Relay) Status() RelayStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *Relay) note(change func(*RelayStatus)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
}
