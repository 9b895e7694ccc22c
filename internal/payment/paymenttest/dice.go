package paymenttest

import "math/rand/v2"

// dice is the randomness of one POST. It depends on the seed, the key and the
// number of the POST only, so that a run repeats itself whatever the concurrency.
type dice = rand.Rand

func newDice(seed uint64, key string, nth int) *dice {
	const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211
	hash := uint64(fnvOffset)
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * fnvPrime
	}
	return rand.New(rand.NewPCG(seed, hash+uint64(nth)))
}
