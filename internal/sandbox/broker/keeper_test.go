package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/billing/internal/sandbox/broker"
)

const (
	group = "g"
	// session is what the members of these tests ask for, and beat how often they are heard when they do not wait.
	session = 600 * time.Millisecond
	beat    = session / 4
	// longRound is for how long a member keeps the others waiting: it is past their sessions, and far below rebalanceLimit.
	longRound = 3 * session
	// rebalanceLimit is for how long the group waits for a member. No test comes near it.
	rebalanceLimit = 5 * time.Minute
)

// member speaks the group's protocol by hand, on a connection of its own.
type member struct {
	t      *testing.T
	client *kgo.Client
	id     string
	epoch  int32
	leads  bool
	data   string // what it says of itself; a change makes the group rebalance
}

func newMember(t *testing.T, b *broker.Broker) *member {
	t.Helper()

	return &member{t: t, client: client(t, b)}
}

// noAnswer stands for the error code of an answer that never came.
const noAnswer int16 = -1000

// request asks, and gives up after limit: ok is false, and the test has failed.
func request[R kmsg.Response](m *member, ask kmsg.Request) (answer R, ok bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.t.Context()), limit)
	defer cancel()

	got, err := m.client.SeedBrokers()[0].Request(ctx, ask)
	if err != nil {
		m.t.Errorf("%T of %s: %v", ask, m.id, err)

		return answer, false
	}

	answer, ok = got.(R)

	return answer, ok
}

// enter gets an id.
func (m *member) enter() *member {
	m.t.Helper()
	require.Equal(m.t, kerr.MemberIDRequired.Code, m.tryJoin())
	require.NotEmpty(m.t, m.id)

	return m
}

// joining is its request to join.
func (m *member) joining() *kmsg.JoinGroupRequest {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics, meta.UserData = []string{topic}, []byte(m.data)

	ask := kmsg.NewPtrJoinGroupRequest()
	ask.Group, ask.MemberID, ask.ProtocolType = group, m.id, "consumer"
	ask.SessionTimeoutMillis, ask.RebalanceTimeoutMillis = int32(session.Milliseconds()), int32(rebalanceLimit.Milliseconds())
	ask.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: meta.AppendTo(nil)}}

	return ask
}

// tryJoin waits for the group to come together.
func (m *member) tryJoin() (code int16) {
	answer, ok := request[*kmsg.JoinGroupResponse](m, m.joining())
	if !ok {
		return noAnswer
	}

	m.id, m.epoch, m.leads = answer.MemberID, answer.Generation, answer.LeaderID == answer.MemberID

	return answer.ErrorCode
}

// trySync waits for the leader, or is it.
func (m *member) trySync() (code int16) {
	ask := kmsg.NewPtrSyncGroupRequest()
	ask.Group, ask.MemberID, ask.Generation = group, m.id, m.epoch

	answer, ok := request[*kmsg.SyncGroupResponse](m, ask)
	if !ok {
		return noAnswer
	}

	return answer.ErrorCode
}

func (m *member) tryBeat() (code int16) {
	ask := kmsg.NewPtrHeartbeatRequest()
	ask.Group, ask.MemberID, ask.Generation = group, m.id, m.epoch

	answer, ok := request[*kmsg.HeartbeatResponse](m, ask)
	if !ok {
		return noAnswer
	}

	return answer.ErrorCode
}

// beatFor is heard for so long, whatever it is told.
func (m *member) beatFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(beat) {
		m.tryBeat()
	}
}

// aside does what is waited for elsewhere.
func aside(do func() int16) <-chan int16 {
	code := make(chan int16, 1)
	go func() { code <- do() }()

	return code
}

// pair is two members of a stable group, the leader first.
func pair(t *testing.T, b *broker.Broker) (leader, other *member) {
	t.Helper()

	leader, other = newMember(t, b).enter(), newMember(t, b)
	require.Zero(t, leader.tryJoin())
	require.True(t, leader.leads)
	require.Zero(t, leader.trySync())

	other.enter()
	joined := aside(other.tryJoin)
	awaitState(t, b, "PreparingRebalance", 2)
	require.Zero(t, leader.tryJoin())
	require.Zero(t, <-joined)
	synced := aside(other.trySync)
	require.Zero(t, leader.trySync())
	require.Zero(t, <-synced)

	return leader, other
}

func awaitState(t *testing.T, b *broker.Broker, state string, members int) {
	t.Helper()
	require.Eventually(t, func() bool {
		g := b.Cluster().GroupInfo(group)

		return g != nil && g.State == state && len(g.Members) == members
	}, limit, time.Millisecond, "state %s with %d members", state, members)
}

func TestAMemberThatWaitsForOthersToJoinIsAnsweredHoweverLongTheyTake(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 2}})
	leader, other := pair(t, b)
	other.data = "changed"
	joined := aside(other.tryJoin)

	awaitState(t, b, "PreparingRebalance", 2)
	leader.beatFor(longRound)
	require.Zero(t, leader.tryJoin())
	require.Zero(t, <-joined, "a member that has waited is one of the group")
	awaitState(t, b, "CompletingRebalance", 2)
}

func TestAMemberThatWaitsForTheLeaderIsAnsweredHoweverLongThatTakes(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 2}})
	leader, other := pair(t, b)
	other.data = "changed"
	joined := aside(other.tryJoin)

	awaitState(t, b, "PreparingRebalance", 2)
	require.Zero(t, leader.tryJoin())
	require.Zero(t, <-joined)
	synced := aside(other.trySync)
	leader.beatFor(longRound)
	require.Zero(t, leader.trySync())
	require.Zero(t, <-synced)
	awaitState(t, b, "Stable", 2)
}

// The one that waits for a dead leader is told to join again, and the group comes together
// without waiting for anybody who is not there.
func TestALeaderThatDiesBetweenJoinAndSyncHoldsUpNobodyBeyondItsSession(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 2}})
	leader, other := pair(t, b)
	third := newMember(t, b).enter()
	other.data = "changed"
	joins := []<-chan int16{aside(other.tryJoin), aside(third.tryJoin)}

	awaitState(t, b, "PreparingRebalance", 3)
	require.Zero(t, leader.tryJoin())

	for _, joined := range joins {
		require.Zero(t, <-joined)
	}

	leader.client.Close() // dead: it never assigns anything

	syncs := []<-chan int16{aside(other.trySync), aside(third.trySync)}
	for _, synced := range syncs {
		require.Equal(t, kerr.RebalanceInProgress.Code, <-synced)
	}

	joins = []<-chan int16{aside(other.tryJoin), aside(third.tryJoin)}
	for _, joined := range joins {
		require.Zero(t, <-joined)
	}

	syncs = []<-chan int16{aside(other.trySync), aside(third.trySync)}
	for _, synced := range syncs {
		require.Zero(t, <-synced)
	}

	awaitState(t, b, "Stable", 2)
}

func TestANewMemberThatDiesBeforeItIsAnsweredIsDroppedByItsSession(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 2}})
	leader := newMember(t, b).enter()
	require.Zero(t, leader.tryJoin())
	require.Zero(t, leader.trySync())

	dead := newMember(t, b).enter()
	ctx, die := context.WithCancel(t.Context())
	asked := aside(func() int16 { _, _ = dead.client.SeedBrokers()[0].Request(ctx, dead.joining()); return 0 })

	awaitState(t, b, "PreparingRebalance", 2)
	die()
	dead.client.Close()
	<-asked
	require.Zero(t, leader.tryJoin())
	require.Zero(t, leader.trySync())
	awaitState(t, b, "Stable", 2)
	leader.beatFor(longRound)
	awaitState(t, b, "PreparingRebalance", 1)
	require.Zero(t, leader.tryJoin())
	require.Zero(t, leader.trySync())
	awaitState(t, b, "Stable", 1)
}

func TestAMemberThatDiesWhileItWaitsIsNotKeptBeyondTheRound(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 2}})
	leader, other := pair(t, b)
	other.data = "changed"
	joined := aside(other.tryJoin)

	awaitState(t, b, "PreparingRebalance", 2)
	require.Zero(t, leader.tryJoin())
	require.Zero(t, <-joined) // and is never heard of again
	require.Zero(t, leader.trySync())
	leader.beatFor(longRound)
	awaitState(t, b, "PreparingRebalance", 1)
	require.Zero(t, leader.tryJoin())
}

// However it came that a member is dropped while it waits: its client hears of it, and may join again.
func TestWhoIsDroppedWhileItWaitsLosesItsConnection(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 2}})
	leader, other := pair(t, b)
	other.data = "changed"
	failed := make(chan error, 1)

	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
		defer cancel()

		_, err := other.client.SeedBrokers()[0].Request(ctx, other.joining())
		failed <- err
	}()
	awaitState(t, b, "PreparingRebalance", 2)
	leader.beatFor(session)

	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.Members = group, []kmsg.LeaveGroupRequestMember{{MemberID: other.id}}
	_, ok := request[*kmsg.LeaveGroupResponse](leader, leave)
	require.True(t, ok)

	err := <-failed
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, leader.tryJoin())
	require.Zero(t, leader.trySync())
	require.Equal(t, kerr.UnknownMemberID.Code, other.tryJoin(), "it is answered again")
}
