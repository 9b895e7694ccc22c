// Package control is the line between a torture run and its victims: the run arms a
// fault at a point of the flow, the victim says when it gets there, and does it.
//
//	run ── order (JSON line) ──▶ victim      what to do, at which point, at which passage
//	run ◀── report (JSON line) ── victim     "there", written before the deed
//
// It is a unix socket, so that a report that was written survives its writer.
package control
