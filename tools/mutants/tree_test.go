package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	second = time.Second
	// root is the repository, seen from this package's folder.
	root = "../.."
)

// A patch that no longer applies breaks nothing, and says so only where somebody runs it.
func TestEveryMutantAppliesAndNamesTestsThatAreThere(t *testing.T) {
	t.Parallel()
	tree, err := filepath.Abs(root)
	require.NoError(t, err)
	all, err := load(root, "")
	require.NoError(t, err)
	for _, m := range all {
		_, err := overlay(t.Context(), &m, tree, filepath.Join(t.TempDir(), m.name))
		require.NoError(t, err, m.name)
		for _, some := range m.tests {
			declared := testsIn(t, filepath.Join(root, some.pkg))
			for _, name := range some.names {
				require.Contains(t, declared, "func "+name+"(", "%s: %s", m.name, some.pkg)
			}
		}
	}
}

// testsIn returns the test files of a package.
func testsIn(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		all.Write(content)
	}
	return all.String()
}

func TestMutantsAreNumberedOnceEach(t *testing.T) {
	t.Parallel()
	all, err := load(root, "")
	require.NoError(t, err)
	seen := map[string]string{}
	for _, m := range all {
		require.Regexp(t, `^\d\d\d?-[a-z0-9-]+$`, m.name)
		number, _, _ := strings.Cut(m.name, "-")
		require.Empty(t, seen[number], "%s has the number of another", m.name)
		seen[number] = m.name
	}
}

// Every rule is broken by some mutant, or the document says why none can.
func TestEveryRuleHasAMutantOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "docs", "rules.md"))
	require.NoError(t, err)
	all, err := load(root, "")
	require.NoError(t, err)
	rules, excused := rows(string(content), "| rule | code | test |"), rows(string(content), "| rule | why no mutant |")
	require.Greater(t, len(rules), 40)

	var broken []string
	for _, m := range all {
		for _, rule := range m.rules {
			found := slices.ContainsFunc(rules, func(row string) bool { return strings.HasPrefix(row, rule) })
			require.True(t, found, "%s breaks no rule of docs/rules.md: %s", m.name, rule)
			broken = append(broken, rule)
		}
	}
	for _, rule := range excused {
		found := slices.ContainsFunc(rules, func(row string) bool { return strings.HasPrefix(row, rule) })
		require.True(t, found, "no such rule: %s", rule)
	}
	var untried []string
	for _, row := range rules {
		begins := func(rule string) bool { return strings.HasPrefix(row, rule) }
		has, excuse := slices.ContainsFunc(broken, begins), slices.ContainsFunc(excused, begins)
		require.False(t, has && excuse, "a mutant breaks it after all: %s", row)
		if !has && !excuse {
			untried = append(untried, row)
		}
	}
	require.Empty(t, untried, "no mutant breaks these, and docs/rules.md does not say why")
}

// rows returns the first cells of the tables with a heading.
func rows(document, heading string) []string {
	var cells []string
	inside := false
	first := regexp.MustCompile(`^\| (.+?) \|`)
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "| rule |"):
			inside = line == heading
		case line != "" && !strings.HasPrefix(line, "|"):
			inside = false
		case inside && !strings.HasPrefix(line, "|---"):
			if cell := first.FindStringSubmatch(line); cell != nil {
				cells = append(cells, cell[1])
			}
		}
	}
	return cells
}
