package audit

import (
	"fmt"
	"maps"
	"time"

	"example.com/billing/internal/domain"
)

// Report is what an audit found.
type Report struct {
	Topic   string
	Group   string
	Began   time.Time
	Took    time.Duration
	Partial bool // less than the whole topic was asked for

	Partitions []PartitionReport
	Records    int64          // with a terminal record each; the sum of Kinds
	Kinds      map[Kind]int64 // every kind, those of no record too

	Problems map[Problem]int64 // all that were found
	Findings []Finding         // the first of them, by problem and coordinates
	Total    int64             // of all findings
	Provider ProviderReport
	Warnings []string
}

// Clean reports whether there is no finding.
func (r *Report) Clean() bool { return r.Total == 0 }

// PartitionReport is what was read of a partition: offsets from From on, without To.
type PartitionReport struct {
	Partition int32
	From, To  int64
	Committed int64 // the group's position when the audit began; -1: none
	Records   int64
}

func (a *Auditor) report(began time.Time) Report {
	r := Report{
		Topic: a.name, Group: a.options.Group, Began: began, Took: a.clock.Now().Sub(began), Partial: a.options.partial(),
		Kinds: map[Kind]int64{}, Problems: map[Problem]int64{},
		Findings: a.found.sorted(), Total: a.found.total(), Provider: a.asked, Warnings: a.warnings,
	}
	for _, k := range Kinds() {
		r.Kinds[k] = a.kinds[k]
		r.Records += a.kinds[k]
	}
	maps.Copy(r.Problems, a.found.count)
	for _, s := range a.partitions() {
		r.Partitions = append(r.Partitions, PartitionReport{
			Partition: s.Partition, From: s.from, To: s.to, Committed: s.Committed, Records: s.records,
		})
	}
	return r
}

// countersAddUp holds the statistics against their identities, over the whole
// history. Beside a part of it that is a warning.
func (a *Auditor) countersAddUp(s *domain.WindowStats) {
	received := s.Processed + s.Duplicates() + s.Invalid
	if s.Received != received {
		a.miscounted("received is %d, and processed + duplicates + invalid are %d", s.Received, received)
	}
	ended := s.Captured + s.Declined + s.DuplicateOrder + s.Discarded + s.Unfinished + s.Parked
	if s.Processed+s.Recovered != ended {
		a.miscounted("processed + recovered are %d, and captured + declined + duplicate_order + discarded + unfinished + parked are %d",
			s.Processed+s.Recovered, ended)
	}
}

func (a *Auditor) miscounted(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if a.options.partial() {
		a.warnings = append(a.warnings, "counters of the whole history: "+what)
		return
	}
	a.found.add(Finding{Problem: WrongCounters, What: what})
}
