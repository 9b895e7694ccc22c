package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlights(t *testing.T) {
	t.Parallel()
	biller := newHandBiller()
	at := func(event, order int) *item {
		it := keyed(biller, orderAt(1, event, order))
		return &it
	}

	t.Run("an event or an order in flight holds up other batches", func(t *testing.T) {
		t.Parallel()
		f := newFlights()
		first, second := &batch{lane: &lane{}}, &batch{lane: &lane{}}
		require.True(t, f.claim(first, at(1, 1)))
		require.False(t, f.claim(second, at(1, 2)), "the event")
		require.False(t, f.claim(second, at(2, 1)), "the order")
		require.True(t, f.claim(second, at(2, 2)), "a claim that was refused has claimed nothing")
		require.False(t, f.claim(first, at(3, 2)))
		require.Equal(t, []*lane{second.lane}, first.heldUp, "told once")
		require.Equal(t, []*lane{first.lane}, second.heldUp)
	})
	t.Run("in one batch they may repeat", func(t *testing.T) {
		t.Parallel()
		f, b := newFlights(), &batch{lane: &lane{}}
		for range 2 {
			require.True(t, f.claim(b, at(1, 1)))
			require.True(t, f.claim(b, at(2, 1)))
		}
	})
	t.Run("what holds no event never waits", func(t *testing.T) {
		t.Parallel()
		f := newFlights()
		for range 2 {
			require.True(t, f.claim(&batch{lane: &lane{}}, &item{}))
		}
		require.Empty(t, f.owners)
	})
	t.Run("an event is not taken for an order", func(t *testing.T) {
		t.Parallel()
		f := newFlights()
		require.True(t, f.claim(&batch{lane: &lane{}}, at(1, 2)))
		require.True(t, f.claim(&batch{lane: &lane{}}, at(2, 1)))
	})
}
