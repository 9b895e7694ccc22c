package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that lost its transaction commits an intent all the same, while another one is
// about to make the event final without a call. Nothing of the first is to be left behind: no
// claim would ever come for it.
func TestWhatWasWithheldLeavesNothingBehindThatNobodyWillClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b := w.event(1, "10.50"), w.event(1, "10.50")
	reached, release := one.seam.pauseAt(openBegins)
	lost := one.start(b.record)
	await(t, reached)
	w.terminateMain()

	two.mustBill(a.record)
	about, finish := two.seam.pauseAt(mainCommits)
	done := two.start(b.record) // its order is captured by now
	await(t, about)
	close(release)
	require.Error(t, await(t, lost))
	close(finish)
	require.NoError(t, await(t, done))
	w.final(b, "duplicate_order")
	require.Empty(t, w.intents(b))
	require.Zero(t, w.provider.postsOf(b.id))
	w.balanced()
}
