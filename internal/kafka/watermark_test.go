package kafka

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWatermark(t *testing.T) {
	t.Parallel()
	at := func(offset int64) mark { return mark{offset: offset, epoch: noEpoch} }

	t.Run("follows batches in order", func(t *testing.T) {
		t.Parallel()
		var w watermark
		first := w.begin(at(10))
		position, moved := w.finish(first)
		require.True(t, moved)
		require.Equal(t, at(10), position)
		position, moved = w.finish(w.begin(at(25)))
		require.True(t, moved)
		require.Equal(t, at(25), position)
		require.Empty(t, w.open)
	})
	t.Run("does not pass a gap", func(t *testing.T) {
		t.Parallel()
		var w watermark
		first, second, third := w.begin(at(10)), w.begin(at(20)), w.begin(at(30))
		_, moved := w.finish(third)
		require.False(t, moved)
		position, moved := w.finish(first)
		require.True(t, moved)
		require.Equal(t, at(10), position)
		position, moved = w.finish(second)
		require.True(t, moved)
		require.Equal(t, at(30), position)
	})
	t.Run("forgets a batch that failed and begins anew", func(t *testing.T) {
		t.Parallel()
		var w watermark
		failed := w.begin(at(10))
		w.abandon(failed)
		position, moved := w.finish(w.begin(at(3)))
		require.True(t, moved)
		require.Equal(t, at(3), position)
	})
	t.Run("does not forget a batch that others have passed", func(t *testing.T) {
		t.Parallel()
		var w watermark
		failed, later := w.begin(at(10)), w.begin(at(20))
		w.abandon(failed)
		_, moved := w.finish(later)
		require.False(t, moved)
	})
	t.Run("goes back with the log", func(t *testing.T) {
		t.Parallel()
		var w watermark
		w.finish(w.begin(at(1000)))
		position, moved := w.finish(w.begin(at(1)))
		require.True(t, moved)
		require.Equal(t, at(1), position)
	})
}

// Whatever the order in which batches begin and finish, the mark stands exactly
// at the end of the finished prefix.
func TestWatermarkIsTheFinishedPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w watermark
		var begun []*span
		finished := map[*span]bool{}
		var position mark
		steps := rapid.IntRange(1, 200).Draw(t, "steps")
		for range steps {
			unfinished := slices.DeleteFunc(slices.Clone(begun), func(s *span) bool { return finished[s] })
			if len(unfinished) == 0 || rapid.Bool().Draw(t, "begin") {
				begun = append(begun, w.begin(mark{offset: int64(len(begun) + 1), epoch: int32(len(begun))}))
				continue
			}
			done := rapid.SampledFrom(unfinished).Draw(t, "finish")
			finished[done] = true
			if to, moved := w.finish(done); moved {
				position = to
			}
			prefix := 0
			for prefix < len(begun) && finished[begun[prefix]] {
				prefix++
			}
			require.EqualValues(t, prefix, position.offset)
			require.Len(t, w.open, len(begun)-prefix)
		}
	})
}
