package domain

import "time"

// Counters count what became of records and events. They are written in the
// transaction that makes it so, and add up:
//
//	Received = Processed + Redelivered + Republished + Conflicting + Invalid
//	Redelivered + Republished + Conflicting = the sum of Delays
//	Processed + Recovered = Captured + Declined + DuplicateOrder + Discarded
//	                        + unfinished and parked intents
type Counters struct {
	Received       int64 // records made durable
	Processed      int64 // valid events seen for the first time
	Recovered      int64 // replayed invalid records that turned out fresh
	Redelivered    int64 // the same record again: same coordinates
	Republished    int64 // the same event at other coordinates
	Conflicting    int64 // the same event id with another meaning
	Invalid        int64 // records that hold no valid event
	Captured       int64
	Declined       int64
	DuplicateOrder int64
	Discarded      int64
	NonV7          int64 // processed events whose id is not a UUID version 7

	// Delays are how long after the first sighting of their event the duplicates
	// came, by [DelayBucket]. The sums over them do not overlap.
	Delays [delayBuckets]int64
	// IDAhead are the processed events of version 7 whose id's time is more than a
	// second ahead of our clock when they are taken: their producer's clock is wrong, or
	// ours. IDAheadMax is by how much at most, in whole milliseconds.
	IDAhead    int64
	IDAheadMax time.Duration
}

// Plus returns the sum of both; of the largest lead of an id, the larger one.
func (c Counters) Plus(d Counters) Counters {
	c.Received += d.Received
	c.Processed += d.Processed
	c.Recovered += d.Recovered
	c.Redelivered += d.Redelivered
	c.Republished += d.Republished
	c.Conflicting += d.Conflicting
	c.Invalid += d.Invalid
	c.Captured += d.Captured
	c.Declined += d.Declined
	c.DuplicateOrder += d.DuplicateOrder
	c.Discarded += d.Discarded
	c.NonV7 += d.NonV7
	for i := range d.Delays {
		c.Delays[i] += d.Delays[i]
	}
	c.IDAhead += d.IDAhead
	c.IDAheadMax = max(c.IDAheadMax, d.IDAheadMax)
	return c
}

// Duplicates is the number of records that repeated an event.
func (c Counters) Duplicates() int64 { return c.Redelivered + c.Republished + c.Conflicting }

// StatKey says which counters a change belongs to.
type StatKey struct {
	Group     string
	Topic     string
	Partition int32
	Minute    time.Time // UTC, whole minutes
}

func statKey(group string, c Coordinates, now time.Time) StatKey {
	return StatKey{Group: group, Topic: c.Topic, Partition: c.Partition, Minute: now.UTC().Truncate(time.Minute)}
}

// Stats are the changes of one transaction.
type Stats map[StatKey]Counters

func (s Stats) add(k StatKey, d Counters) { s[k] = s[k].Plus(d) }

// count adds a charge that became final.
func (c *Counters) final(status ChargeStatus) {
	switch status {
	case ChargeCaptured:
		c.Captured++
	case ChargeDeclined:
		c.Declined++
	case ChargeDuplicateOrder:
		c.DuplicateOrder++
	case ChargeDiscarded:
		c.Discarded++
	}
}
