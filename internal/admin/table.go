package admin

import (
	"time"

	"example.com/billing/internal/domain"
)

// tableView describes processed_event and what retention makes of it. Rows and sizes
// of the whole and of the default partition are those of now; mode, width, ranges and
// what follows them are as the latest turn of retention left them, null before the
// first one.
type tableView struct {
	Rows        *int64        `json:"rows"` // the planner's estimate; null before it has one
	Oldest      *time.Time    `json:"oldest"`
	OldestEvent *time.Time    `json:"oldest_event"`
	Partitions  int           `json:"partitions"`
	Retention   string        `json:"retention"`
	TableBytes  int64         `json:"table_bytes"`
	IndexBytes  int64         `json:"index_bytes"`
	Default     defaultView   `json:"default_partition"`
	Mode        *string       `json:"mode"`
	Width       *string       `json:"range_width"`
	Ranges      []rangeView   `json:"ranges"`
	NextDrop    *nextDropView `json:"next_drop"`
	LastTurn    *turnView     `json:"last_turn"`
}

type defaultView struct {
	Rows  *int64 `json:"rows"` // the planner's estimate; null before it has one
	Bytes int64  `json:"bytes"`
	// BlockedBy says what keeps rows that are due, as of the latest turn.
	BlockedBy *string `json:"blocked_by"`
}

type rangeView struct {
	From  time.Time         `json:"from"`
	To    time.Time         `json:"to"`
	Rows  *int64            `json:"rows"` // likewise
	Bytes int64             `json:"bytes"`
	State domain.RangeState `json:"state"`
	Why   *string           `json:"why"`
}

type nextDropView struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	At        time.Time `json:"at"`
	BlockedBy *string   `json:"blocked_by"`
}

type turnView struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	KeptFor  string    `json:"kept_for"`
	Wanted   *string   `json:"wanted"` // what the instance is to keep for, where that is shorter and nobody has confirmed it
	Error    *string   `json:"error"`
}

func viewTable(table *domain.ProcessedEventTable, retention time.Duration, turn *domain.RetentionReport) tableView {
	view := tableView{
		Rows: estimate(table.Rows), Partitions: table.Partitions, Retention: duration(retention),
		TableBytes: table.TableBytes, IndexBytes: table.IndexBytes,
		Default: defaultView{Rows: estimate(table.Default.Rows), Bytes: table.Default.Bytes},
		Ranges:  []rangeView{},
	}
	if table.Oldest != nil {
		view.Oldest = instant(*table.Oldest)
	}
	if table.OldestEvent != nil {
		view.OldestEvent = instant(*table.OldestEvent)
	}
	if turn != nil {
		view.addTurn(turn)
	}
	return view
}

func (v *tableView) addTurn(turn *domain.RetentionReport) {
	v.Mode, v.Width = optional(string(turn.Mode)), optional(turn.Width)
	v.LastTurn, v.NextDrop, v.Ranges = new(viewTurn(turn)), viewNext(turn), viewRanges(turn)
	v.Default.BlockedBy = blockedBy(&turn.Default)
}

// estimate returns nil for a table that the planner has never counted.
func estimate(rows int64) *int64 {
	if rows < 0 {
		return nil
	}
	return &rows
}
