package domain

import "context"

// Point is a place in the flow at which a process may die, stand still or be cut
// off, and where that must do no harm.
type Point string

// The points, in the order in which a record passes them.
const (
	AfterClaim         Point = "after-claim"          // the events are inserted, nothing is committed
	AfterIntent        Point = "after-intent"         // the intents are committed aside, nothing is sent
	AnswerReceived     Point = "answer-received"      // the provider has answered, nothing of it is written
	BeforeCommit       Point = "before-commit"        // all is written, nothing is committed
	AfterCommit        Point = "after-commit"         // all is committed, the offset is not
	BeforeOffsetCommit Point = "before-offset-commit" // the offset is about to be committed
	InRevoke           Point = "in-revoke"            // the rebalance takes partitions away
	InRelay            Point = "in-relay"             // messages are published, the cursor stands where it was
)

// Points returns all of them.
func Points() []Point {
	return []Point{AfterClaim, AfterIntent, AnswerReceived, BeforeCommit, AfterCommit, BeforeOffsetCommit, InRevoke, InRelay}
}

// Faults is told that the flow has come to a point, and may do there what a fault
// would: end the process, stop it, or hold the caller. Only tests install one.
type Faults interface {
	Hit(ctx context.Context, at Point)
}

// Reach tells f, which may be nil, that the flow has come to a point.
func Reach(ctx context.Context, f Faults, at Point) {
	if f != nil {
		f.Hit(ctx, at)
	}
}
