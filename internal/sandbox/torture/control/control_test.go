package control_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/sandbox/torture/control"
)

const soon = 10 * time.Second

// connected is a run's line and a victim's hook in one process.
func connected(t *testing.T) (*control.Line, *control.Hook, <-chan int) {
	t.Helper()
	reached := make(chan int, 16)
	socket := filepath.Join(t.TempDir(), "s")
	line, err := control.Listen(socket, func(n int) { reached <- n })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, line.Close()) })
	hook, err := control.Dial(t.Context(), socket)
	require.NoError(t, err)
	require.NoError(t, line.Accept(t.Context(), nil))
	return line, hook, reached
}

func TestAnOrderIsCarriedOutAtItsPointAndAtItsPassage(t *testing.T) {
	t.Parallel()
	line, hook, reached := connected(t)
	require.NoError(t, line.Send(control.Order{Number: 7, Deed: control.Hold, Point: domain.AfterIntent, Skip: 2}))
	passed := make(chan int)
	go func() {
		for n := 0; ; n++ { // until the order has come and the point was passed twice
			hook.Hit(t.Context(), domain.AfterClaim)
			hook.Hit(t.Context(), domain.AfterIntent)
			select {
			case passed <- n:
				return
			case <-t.Context().Done():
				return
			default:
			}
		}
	}()
	select {
	case n := <-reached:
		require.Equal(t, 7, n)
	case <-time.After(soon):
		require.Fail(t, "the point was not reached")
	}
	select {
	case <-passed:
		require.Fail(t, "it went on without being told to")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, line.Send(control.Order{Deed: control.Go}))
	select {
	case n := <-passed:
		require.GreaterOrEqual(t, n, 2)
	case <-time.After(soon):
		require.Fail(t, "it did not go on")
	}
}

func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	line, hook, reached := connected(t)
	require.NoError(t, line.Send(control.Order{Number: 1, Deed: control.Hold, Point: domain.InRevoke}))
	require.NoError(t, line.Send(control.Order{Deed: control.Go}))
	require.Eventually(t, func() bool {
		go hook.Hit(t.Context(), domain.InRevoke)
		return len(reached) > 0
	}, soon, time.Millisecond)
	require.Equal(t, 1, <-reached)
	require.NoError(t, line.Send(control.Order{Deed: control.Go}))
	hook.Hit(t.Context(), domain.InRevoke)
	require.Empty(t, reached)
}

func TestAnOrderThatIsTakenBackIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	line, hook, reached := connected(t)
	require.NoError(t, line.Send(control.Order{Number: 1, Deed: control.Kill, Point: domain.InRevoke}))
	require.NoError(t, line.Send(control.Order{Deed: control.Disarm}))
	// What is sent last is read last: once this one is carried out, the one before is forgotten.
	require.NoError(t, line.Send(control.Order{Number: 2, Deed: control.Hold, Point: domain.InRelay}))
	require.Eventually(t, func() bool {
		go hook.Hit(t.Context(), domain.InRelay)
		return len(reached) > 0
	}, soon, time.Millisecond)
	require.Equal(t, 2, <-reached)
	hook.Hit(t.Context(), domain.InRevoke) // or the test would die here
	require.NoError(t, line.Send(control.Order{Deed: control.Go}))
}

func TestAVictimThatHasEndedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	line, err := control.Listen(filepath.Join(t.TempDir(), "s"), func(int) {})
	require.NoError(t, err)
	defer func() { require.NoError(t, line.Close()) }()
	gone := make(chan struct{})
	close(gone)
	require.ErrorContains(t, line.Accept(t.Context(), gone), "has ended")
	require.ErrorContains(t, line.Send(control.Order{}), "no victim")
}
