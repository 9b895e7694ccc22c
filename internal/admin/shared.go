package admin

import "example.com/billing/internal/domain"

// What commands print as JSON is told by the names and units of the API: they take these
// views of it, and [RetentionTurn].

// Source is where a record stands in Kafka.
type Source = sourceView

// ViewSource returns coordinates as they are shown.
func ViewSource(c domain.Coordinates) Source { return viewSource(c) }

// Done is what became of a dead letter, or would become of it.
type Done = doneView

// ViewDone returns what became of a letter as it is shown. Dry: nothing was changed.
func ViewDone(id int64, p *domain.Plan, dry bool) Done { return viewDone(id, p, dry) }
