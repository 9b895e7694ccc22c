package run

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/payment/paymenttest"
)

// Facts are what a run left behind, as seen from outside the service.
type Facts struct {
	Setup    Setup
	Sent     Sent
	Topic    Topic
	Book     Book
	Ledger   paymenttest.Ledger
	Charges  map[uuid.UUID]paymenttest.Charge // the provider's, by key
	Strange  int                              // keys at the provider that are no UUID
	Kills    []Kill
	Rolls    []Roll
	Running  int // instances at the end
	Lag      int64
	Audit    Audit
	Outcomes Outcomes // what the service told of charges; nil Events: it was not to tell
	Told     Told     // what it told of dead letters; nil Letters: likewise
	Stats    []Stats  // what the admin API of each instance said, before they ended
	Disorder []string // instances that did not end in order when they were asked to
	Duration time.Duration
}

// Setup is what the run was asked to do.
type Setup struct {
	Broker     string `json:"broker"` // "embedded", "apache" or the address of an existing one
	Instances  int    `json:"instances"`
	Partitions int32  `json:"partitions"`
	Seed       uint64 `json:"seed"`
	Faults     string `json:"faults"`      // as given to --fault
	Faulty     bool   `json:"faulty"`      // the provider was told to fail: requests may be repeated without a kill
	IgnoreKeys bool   `json:"ignore_keys"` // the provider charges again for every request
	Kills      int    `json:"kills"`       // how many were asked for
	Joins      int    `json:"joins"`       // how many turns of joining and leaving were asked for
	Backlog    bool   `json:"backlog"`     // records were to wait in every partition at each of them
	Disturbed  bool   `json:"disturbed"`   // otherwise than by kills: records may be delivered again
}

// Totals are sums of money by currency, in minor units.
type Totals map[string]*big.Int

// Sent is what was produced, by the producer's own count.
type Sent struct {
	Records     int64
	Unique      int64
	Same        int64 // duplicates: the same bytes again
	Republished int64 // duplicates: the same event in another form, later
	Conflicting int64 // the id of an event with another amount, later
	Invalid     int64 // of Records: no valid event, and without a usable event id
	Totals      Totals
}

// Topic is what a second consumer reads in the topic after the run.
type Topic struct {
	Records int64
	Events  map[uuid.UUID]int64 // records of each event
	Foreign int64               // records without a usable event id: not from this producer
	// Meanings are what the first record of each event asks for, and Conflicting the event by the
	// coordinates (topic/partition@offset) of those that ask for something else.
	Meanings    map[uuid.UUID]Meaning
	Conflicting map[string]uuid.UUID
}

// Meaning is what a record asks for, however it is written.
type Meaning struct {
	OrderID, CustomerID int64
	Amount              string // a fraction in lowest terms, of major units
	Currency            string
	OccurredAt          int64 // Unix nanoseconds
}

// Charge is a row of the table charge.
type Charge struct {
	OrderID  int64
	Amount   *big.Rat // in major units
	Currency string
	Status   string
	Attempts int
}

// Letter is a dead letter.
type Letter struct {
	EventID uuid.UUID // uuid.Nil when the record had none
	Reason  string
	State   string
	Source  string // topic/partition@offset
}

// IntentKey is what intents are counted by.
type IntentKey struct {
	State   string
	Claimed bool
}

// Counters are the sums of dedup_stat over the whole history.
type Counters struct {
	Received, Processed, Recovered              int64
	Redelivered, Republished, Conflicting       int64
	Invalid                                     int64
	Captured, Declined, DuplicateOrder, Discard int64
}

// Duplicates is the sum of the three kinds.
func (c Counters) Duplicates() int64 { return c.Redelivered + c.Republished + c.Conflicting }

// Book is what the service's tables hold.
type Book struct {
	Processed int64 // rows of processed_event of the group
	Charges   map[uuid.UUID]Charge
	Letters   []Letter
	Intents   map[IntentKey]int64
	Counters  Counters
	Delays    map[string]int64 // the duplicates by how late they came; the names are those of the buckets
	Log       []Logged         // the log of duplicates
}

// Logged is a line of the log of duplicates.
type Logged struct {
	EventID uuid.UUID
	Kind    string
	Source  string // topic/partition@offset
	First   string // of the record that it repeats, likewise
}

// unasked counts the dead letters that say nothing about the orders: of records that hold
// no valid event, and of those that give one another meaning.
func (b *Book) unasked() int64 {
	n := b.invalidLetters()
	for _, l := range b.Letters {
		if l.Reason == conflictingPayload {
			n++
		}
	}
	return n
}

// invalidLetters counts the dead letters of records that hold no valid event.
func (b *Book) invalidLetters() (n int64) {
	for _, l := range b.Letters {
		if strings.HasPrefix(l.Reason, "invalid_") {
			n++
		}
	}
	return n
}

// conflictingPayload is the reason of a dead letter that gives a known event id another meaning.
const conflictingPayload = "conflicting_payload"

// Unfinished counts the intents that wait for time, claimed or not.
func (b *Book) Unfinished() (claimed, unclaimed int64) {
	for k, n := range b.Intents {
		switch {
		case k.State == "parked" || k.State == "held":
		case k.Claimed:
			claimed += n
		default:
			unclaimed += n
		}
	}
	return claimed, unclaimed
}

// Parked counts the claimed intents that wait for an operator.
func (b *Book) Parked() int64 {
	return b.Intents[IntentKey{"parked", true}] + b.Intents[IntentKey{"held", true}]
}

// Statuses counts the charges by status.
func (b *Book) Statuses() map[string]int64 {
	n := make(map[string]int64)
	for id := range b.Charges {
		n[b.Charges[id].Status]++
	}
	return n
}

// Stats is what an instance's statistics page says.
type Stats struct {
	Instance   string
	Counters   Counters
	Delays     map[string]int64 // by bucket
	Unfinished int64
	Parked     int64
}

// Kill is one kill -9 of an instance.
type Kill struct {
	Instance   int                  `json:"instance"`
	At         time.Duration        `json:"-"`
	AtSeconds  float64              `json:"at_seconds"`
	Posts      int64                `json:"posts"`     // the provider had seen by then
	InFlight   int                  `json:"in_flight"` // unfinished intents right after it
	Unfinished map[uuid.UUID]string `json:"-"`         // their states by event
}

// Roll is one turn in which an instance left, joined, or one of each.
type Roll struct {
	Left      int           `json:"left"`   // its number; 0: none
	Joined    int           `json:"joined"` // its number; 0: none
	At        time.Duration `json:"-"`
	AtSeconds float64       `json:"at_seconds"`
	Posts     int64         `json:"posts"` // the provider had seen by then
	// LeftInFlight is how many records were in flight at the instance that was told to end.
	LeftInFlight int `json:"left_in_flight"`
	// MovedInFlight is how many were, at the others, when partitions changed hands there.
	MovedInFlight int `json:"moved_in_flight"`
	// Waiting is how many records in each partition, at least, nobody had begun with when the group had settled: with all
	// of them sent at once they have waited ever since it moved. 0 also where no backlog was asked for.
	Waiting  int64   `json:"waiting"`
	Members  int     `json:"members"` // of the group afterwards
	Settled  bool    `json:"settled"` // every partition had an owner in the end
	Seconds  float64 `json:"seconds"` // until then
	Disorder string  `json:"disorder,omitempty"`
}

// String tells the turn in one line.
func (r Roll) String() string {
	var what []string
	if r.Left > 0 {
		what = append(what, fmt.Sprintf("instance %d left with %s records in flight", r.Left, number(int64(r.LeftInFlight))))
	}
	if r.Joined > 0 {
		what = append(what, fmt.Sprintf("instance %d joined, %s in flight as partitions moved", r.Joined, number(int64(r.MovedInFlight))))
	}
	end := fmt.Sprintf("%d members settled after %.1f s", r.Members, r.Seconds)
	if r.Waiting > 0 {
		end += fmt.Sprintf(", %s waiting in each partition at least", number(r.Waiting))
	}
	if !r.Settled {
		end = fmt.Sprintf("NOT SETTLED after %.1f s", r.Seconds)
	}
	return fmt.Sprintf("%s, at %.1f s, after %s POSTs: %s", strings.Join(what, "; "), r.AtSeconds, number(r.Posts), end)
}
