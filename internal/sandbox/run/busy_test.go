package run

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// On a busy machine a look takes longer than a lump of records is in flight: if they were all
// sent at once, the instance would be done with its own before it is seen with any.
func TestEachLumpOfRecordsIsLookedForBeforeTheNextIsSent(t *testing.T) {
	t.Parallel()
	r := roller{rolls: 1, records: 1000, feed: newFeed()}
	from := r.upTo(0, rollHead)
	r.feed.allow(from)
	var sent []time.Time // when a further lump was first seen to be let go
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.feed.mu.Lock()
		defer r.feed.mu.Unlock()
		lumps := int((r.feed.allowed - from) / rollLump)
		if lumps > len(sent) {
			sent = append(sent, time.Now())
		}
		inFlight := 0
		if lumps == 3 {
			inFlight = 7
		}
		fmt.Fprintf(w, `{"assignment":[{"partition":2,"in_flight":%d}]}`, inFlight)
	}))
	t.Cleanup(page.Close)
	require.Equal(t, 7, r.awaitBusy(t.Context(), &instance{base: page.URL}, 0))
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	require.Len(t, sent, 3)
	require.GreaterOrEqual(t, sent[2].Sub(sent[0]), lumpLook, "two pauses, seen through one look each")
}

func TestNobodyIsMadeToLeaveBeforeTheGroupHasAssembled(t *testing.T) {
	t.Parallel()
	r := roller{watcher: testWatcher(t), members: newMembers([]*instance{{number: 1}, {number: 2}})}
	join := func() {
		c, err := kgo.NewClient(kgo.SeedBrokers(r.watcher.brokers...), kgo.ConsumerGroup(testGroup), kgo.ConsumeTopics(testTopic))
		require.NoError(t, err)
		t.Cleanup(c.Close)
	}
	eyes := *r.watcher // it keeps what it has learnt
	assembled := make(chan struct{})
	go func() {
		defer close(assembled)
		r.assemble(t.Context())
	}()
	join()
	require.Eventually(t, func() bool {
		now, err := eyes.stands(t.Context())
		return err == nil && now.settled(1)
	}, 20*time.Second, rollLook)
	select {
	case <-assembled:
		require.Fail(t, "one of two has joined")
	case <-time.After(10 * rollLook):
	}
	join()
	<-assembled
	now, err := eyes.stands(t.Context())
	require.NoError(t, err)
	require.True(t, now.settled(2))
}
