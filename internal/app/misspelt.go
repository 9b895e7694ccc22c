package app

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"example.com/billing/internal/telemetry"
)

// Bounds of looking for misspelt variables.
const (
	maxEdits     = 2      // between a name and the setting that may be meant
	maxVariables = 10_000 // of the environment that are looked at
	maxMisspelt  = 10     // that are told
)

// misspelling is a variable that is no setting, and the one that may be meant.
type misspelling struct{ given, meant string }

// misspelt returns the variables of an environment that look like a setting which is not
// given: a name a slip or two away from it. Everything else in the environment is somebody
// else's. Values are not looked at.
func misspelt(environ []string) (found []misspelling) {
	given := map[string]bool{}
	for _, v := range environ[:min(len(environ), maxVariables)] {
		name, _, _ := strings.Cut(v, "=")
		given[name] = true
	}
	known := variables()
	missing := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return given[name] })
	for name := range given {
		if slices.Contains(known, name) {
			continue
		}
		if meant := nearest(strings.ToUpper(name), missing); meant != "" {
			found = append(found, misspelling{name, meant})
		}
	}
	slices.SortFunc(found, func(a, b misspelling) int { return cmp.Compare(a.given, b.given) })
	if len(found) > maxMisspelt {
		found = found[:maxMisspelt]
	}
	return found
}

// variables are the names of all settings.
func variables() (names []string) {
	eachVariable(reflect.ValueOf(Settings{}), func(name string, _ reflect.Value) { names = append(names, name) })
	for _, name := range secretVariables() {
		names = append(names, name+"_FILE")
	}
	return append(names, telemetry.Variables()...)
}

// nearest returns the name that is the fewest edits away, "" where that is too many.
func nearest(name string, names []string) (meant string) {
	least := maxEdits + 1
	for _, n := range names {
		if d := edits(name, n); d < least {
			least, meant = d, n
		}
	}
	return meant
}

// edits is the number of letters that have to be put in, taken out, replaced or swapped with
// their neighbour to make one name of the other (the optimal string alignment distance).
// Names whose lengths differ by more than maxEdits are not compared: that many, and one, it says then.
func edits(a, b string) int {
	if d := len(a) - len(b); max(d, -d) > maxEdits {
		return maxEdits + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// warnOfMisspelt tells of variables that look like settings and are none. It refuses nothing.
func warnOfMisspelt(ctx context.Context, log *slog.Logger, environ []string) {
	for _, m := range misspelt(environ) {
		log.WarnContext(ctx, m.given+" is not a setting; did you mean "+m.meant+"?") //nolint:sloglint // a sentence for whoever types it
	}
}
