package broker

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// beatsPerSession is how often within the shortest session it is beaten for a member that waits.
	beatsPerSession = 4
	// beatTimeout bounds one heartbeat.
	beatTimeout = time.Second
	// The states of a group, as kfake calls them, in which it owes its members an answer: to JoinGroup, and to SyncGroup.
	joining, syncing = "PreparingRebalance", "CompletingRebalance"
)

// keeper keeps members in their group while it owes them an answer. A client sends no heartbeat from
// JoinGroup or SyncGroup to their answers, and Kafka expects none; kfake counts the session on:
//
//   - it drops a member whose session is over in between without ever answering it, and reads nothing more from its
//     connection: the client's heartbeats and commits on it are not answered either, until its request times
//     out, which for JoinGroup is after max.poll.interval.ms;
//   - a member dropped while it waited for SyncGroup is subtracted from those who have joined, among whom it was
//     not: the group then waits for one member more than it has, at most the longest max.poll.interval.ms;
//   - a new member whose connection is lost before JoinGroup is answered has no session at all: it stays, and
//     with it the partitions that it is given.
//
// So the keeper beats for who waits, from JoinGroup or SyncGroup until the group has answered, and once more after that: from
// then on the member's own session counts, whether it is still there or not. Where it comes too late, for the whole
// process stood still say, it closes the connection of who was dropped: the client connects and joins again at once.
type keeper struct {
	cluster *kfake.Cluster
	doors   *doors
	client  *kgo.Client
	every   time.Duration
	end     context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex
	waiting map[seat]wait
}

// seat is a member's place in its group.
type seat struct{ group, member string }

// wait says until when a group owes an answer.
type wait struct {
	state string // of the group while it does
	epoch int32  // likewise
	since time.Time
	host  string // the member's, once the group has told it
}

// keep starts a keeper for a broker that listens on this port of 127.0.0.1, with so short sessions.
func keep(cluster *kfake.Cluster, doors *doors, port int, session time.Duration) (*keeper, error) {
	// Not the advertised address: behind it there may be a proxy that is cut.
	client, err := kgo.NewClient(kgo.SeedBrokers(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
	if err != nil {
		return nil, fmt.Errorf("keep waiting members: %w", err)
	}

	ctx, end := context.WithCancel(context.Background())
	k := &keeper{
		cluster: cluster, doors: doors, client: client, every: session / beatsPerSession,
		end: end, ended: make(chan struct{}), waiting: make(map[seat]wait),
	}
	cluster.ControlKey(int16(kmsg.JoinGroup), k.hear)
	cluster.ControlKey(int16(kmsg.SyncGroup), k.hear)

	go k.run(ctx)

	return k, nil
}

// close ends the keeper. To be called before the cluster is closed, which answers no question after that.
func (k *keeper) close() {
	k.end()
	<-k.ended
	k.client.Close()
}

// hear takes down who is about to wait; the cluster calls it before it handles the request, and handles it itself then.
func (k *keeper) hear(request kmsg.Request) (kmsg.Response, error, bool) { //nolint:revive // the cluster's signature
	switch r := request.(type) {
	case *kmsg.JoinGroupRequest:
		if r.MemberID == "" {
			break // it is told its id at once, and asks again with it
		}

		if group := k.cluster.GroupInfo(r.Group); group != nil {
			k.note(seat{r.Group, r.MemberID}, wait{state: joining, epoch: group.Epoch, since: time.Now()})
		}
	case *kmsg.SyncGroupRequest:
		k.note(seat{r.Group, r.MemberID}, wait{state: syncing, epoch: r.Generation, since: time.Now()})
	}

	return nil, nil, false
}

func (k *keeper) note(s seat, w wait) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[s] = w
}

// run beats until ctx ends.
func (k *keeper) run(ctx context.Context) {
	defer close(k.ended)

	tick := time.NewTicker(k.every)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		for s, w := range k.all() {
			k.beat(ctx, s, w)
		}
	}
}

func (k *keeper) all() map[seat]wait {
	k.mu.Lock()
	defer k.mu.Unlock()

	return maps.Clone(k.waiting)
}

// beat sends one heartbeat for a member, and forgets it where that was the last one.
func (k *keeper) beat(ctx context.Context, s seat, w wait) {
	group := k.cluster.GroupInfo(s.group)
	if group == nil {
		k.forget(s, w)

		return
	}

	host := ""

	for _, m := range group.Members {
		if m.MemberID == s.member {
			host = m.ClientHost
		}
	}

	// What was only just heard may not have been handled yet.
	handled := time.Since(w.since) > k.every

	switch {
	case host == "" && w.host != "" && handled: // dropped
		k.doors.shut(w.host)
		k.forget(s, w)
	case handled && (group.State != w.state || group.Epoch != w.epoch):
		k.send(ctx, s, group.Epoch)
		k.forget(s, w)
	default:
		k.send(ctx, s, group.Epoch)
		k.see(s, w, host)
	}
}

// send sends one heartbeat for a member. An error says that the group or the member has moved on: the next look tells.
func (k *keeper) send(ctx context.Context, s seat, epoch int32) {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()

	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = s.group, s.member, epoch
	_, _ = k.client.SeedBrokers()[0].Request(ctx, beat)
}

// see takes down where a member that waits is connected from, unless it waits anew.
func (k *keeper) see(s seat, w wait, host string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.waiting[s] == w && host != "" {
		w.host = host
		k.waiting[s] = w
	}
}

// forget forgets a wait, unless the member waits anew.
func (k *keeper) forget(s seat, w wait) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.waiting[s] == w {
		delete(k.waiting, s)
	}
}
