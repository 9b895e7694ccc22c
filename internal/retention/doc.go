// Package retention keeps processed_event as long as it is to be kept, and no longer.
//
// The table is partitioned by ranges of event ids, which order by time. A turn, once a
// minute and in one instance of all:
//
//	attach    ranges for the days to come, so that new rows find theirs
//	empty     ranges that are wholly older than the retention: TRUNCATE, then DROP
//	delete    what lies outside the ranges, row by row, by the time it was written
//	chores    whatever else is to be forgotten, by others
//
// Nothing is forgotten that something unfinished or unread may still ask for: see [Reader].
package retention
