package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// verdict is what became of a mutant.
type verdict string

const (
	verdictCaught   verdict = "caught"
	verdictSurvived verdict = "SURVIVED"
	verdictApply    verdict = "does not apply"
	verdictBuild    verdict = "does not build"
	verdictMissing  verdict = "test not found"
	verdictHang     verdict = "does not end"
	verdictBroken   verdict = "could not be tested"
)

// outcome is what `go test -json` told of one package's tests.
type outcome struct {
	ran, failed map[string]bool // top-level tests by name
	unbuilt     bool
	timedOut    bool
	output      []string // the last lines
}

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Test        string
	Output      string
	FailedBuild string
}

// keepLines bounds the output that is kept to explain a verdict.
const keepLines = 60

// read takes what go test wrote. Lines that are no JSON are its own complaints.
func (o *outcome) read(out []byte) {
	o.ran, o.failed = map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{Action: "output", Output: lines.Text() + "\n"}
		}
		o.take(e)
	}
}

func (o *outcome) take(e event) {
	switch e.Action {
	case "output", "build-output":
		if o.output = append(o.output, e.Output); len(o.output) > keepLines {
			o.output = o.output[1:]
		}
		o.timedOut = o.timedOut || strings.HasPrefix(e.Output, "panic: test timed out after ")
	case "build-fail":
		o.unbuilt = true
	case "run":
		o.ran[e.Test] = true
	case "fail":
		o.unbuilt = o.unbuilt || e.FailedBuild != ""
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			o.failed[e.Test] = true
		}
	}
}

// judge says what the tests of one package make of a mutant, and in a few words why.
func (o *outcome) judge(t tests, hangs bool) (v verdict, detail string) {
	missing := slices.DeleteFunc(slices.Clone(t.names), func(name string) bool { return o.ran[name] })
	passed := slices.DeleteFunc(slices.Clone(t.names), func(name string) bool { return o.failed[name] })
	switch {
	case o.unbuilt:
		return verdictBuild, t.pkg
	case o.timedOut && hangs:
		return verdictCaught, "does not end"
	case o.timedOut:
		return verdictHang, t.pkg + ": only a header `red: hang` makes that red"
	case len(missing) > 0:
		return verdictMissing, t.pkg + " " + strings.Join(missing, " ")
	case len(passed) > 0:
		return verdictSurvived, strings.Join(passed, " ")
	}
	return verdictCaught, strings.Join(t.names, " ")
}
