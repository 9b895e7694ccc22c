package run

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// members says which instances run, so that those who disturb them never meet at one.
type members struct {
	mu   sync.Mutex
	all  []*instance
	down []*instance // not running, and nobody's
	busy []*instance // running, coming or going, in the hands of a disturber
}

func newMembers(all []*instance) *members { return &members{all: all} }

// take draws a running instance for its taker alone, nil when all are taken already.
func (m *members) take(dice *rand.Rand) *instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeOf(m.idle(), dice)
}

// draw draws who leaves and who joins next, and takes them: one of either, or one of
// each. One instance at least stays. Both are nil when all are taken already.
func (m *members) draw(dice *rand.Rand) (leaves, joins *instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var may [][2]bool // leave, join
	idle := m.idle()
	leave, join := len(idle) > 0 && len(m.all)-len(m.down) > 1, len(m.down) > 0
	if leave {
		may = append(may, [2]bool{true, false})
	}
	if join {
		may = append(may, [2]bool{false, true})
	}
	if leave && join {
		may = append(may, [2]bool{true, true})
	}
	if len(may) == 0 {
		return nil, nil
	}
	drawn := may[dice.IntN(len(may))]
	if drawn[0] {
		leaves = m.takeOf(idle, dice)
	}
	if drawn[1] {
		joins = m.takeOf(m.down, dice)
		m.down = slices.DeleteFunc(slices.Clone(m.down), func(i *instance) bool { return i == joins })
	}
	return leaves, joins
}

// put gives an instance back that was taken; nil does nothing.
func (m *members) put(i *instance, running bool) {
	if i == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = slices.DeleteFunc(m.busy, func(b *instance) bool { return b == i })
	if !running {
		m.down = append(m.down, i)
	}
}

// running are those that run, or are about to again after a kill.
func (m *members) running() []*instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.all), func(i *instance) bool { return slices.Contains(m.down, i) })
}

// idle are those that run and are nobody's. The lock is held.
func (m *members) idle() []*instance {
	return slices.DeleteFunc(slices.Clone(m.all), func(i *instance) bool {
		return slices.Contains(m.down, i) || slices.Contains(m.busy, i)
	})
}

// takeOf draws one of these. The lock is held.
func (m *members) takeOf(these []*instance, dice *rand.Rand) *instance {
	if len(these) == 0 {
		return nil
	}
	i := these[dice.IntN(len(these))]
	m.busy = append(m.busy, i)
	return i
}
