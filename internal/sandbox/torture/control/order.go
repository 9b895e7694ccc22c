package control

import "example.com/billing/internal/domain"

// Deed is what a victim does to itself.
type Deed string

// The deeds.
const (
	Kill   Deed = "kill"   // SIGKILL: nothing is finished
	Stop   Deed = "stop"   // SIGSTOP: the world goes on without it
	Exit   Deed = "exit"   // ends at once, as after a fatal error
	Hold   Deed = "hold"   // waits at the point until it is told to go on
	Disarm Deed = "disarm" // forgets an order that was not carried out
	Go     Deed = "go"     // ends a hold
)

// Order tells a victim what to do.
type Order struct {
	Number int          `json:"number"` // comes back in the report
	Deed   Deed         `json:"deed"`
	Point  domain.Point `json:"point,omitempty"`
	Skip   int64        `json:"skip,omitempty"` // how many passages go unharmed before
}

// Report says that a victim is at the point of an order.
type Report struct {
	Number int `json:"number"`
}
