package kafka

// load is what a lane holds, of which its partition is paused and resumed. Records count
// until they and all before them are durable, bytes until their record is.
type load struct {
	records    int
	bytes      int
	maxRecords int
	maxBytes   int
}

func (l *load) add(bytes int) {
	l.records++
	l.bytes += bytes
}

func (l *load) give(records, bytes int) {
	l.records -= records
	l.bytes -= bytes
}

// full reports that a bound is reached: the partition has to be paused.
func (l *load) full() bool { return l.records >= l.maxRecords || l.bytes >= l.maxBytes }

// roomy reports that both bounds are at most half used: the partition may be resumed.
func (l *load) roomy() bool { return l.records <= l.maxRecords/2 && l.bytes <= l.maxBytes/2 }
