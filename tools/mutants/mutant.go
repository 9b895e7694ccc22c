package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// folder is where the mutants lie in the repository.
const folder = "testdata/mutants"

// mutant is one patch with its header.
type mutant struct {
	name  string   // of its file, without the extension
	path  string   // of its file
	rules []string // beginnings of the rules' rows in docs/rules.md
	tests []tests  // each of them has to fail
	why   string
	hangs bool     // its tests do not end: that is how they are red
	files []string // that it changes, relative to the repository
}

// tests are some tests of one package.
type tests struct {
	pkg   string // folder of the package, relative to the repository
	names []string
}

// load returns the mutants of a repository, in the order of their names. Only
// narrows them down by a comma list of numbers or beginnings of names.
func load(root, only string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("list mutants: %w", err)
	}
	var mutants []mutant
	for _, path := range paths {
		if !wanted(path, only) {
			continue
		}
		m, err := read(path)
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, m)
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("no mutant %q in %s", only, folder)
	}
	return mutants, nil
}

func wanted(path, only string) bool {
	if only == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(only, ","), func(beginning string) bool {
		return strings.HasPrefix(filepath.Base(path), strings.TrimSpace(beginning))
	})
}

// read reads one patch; the error names it.
func read(path string) (mutant, error) {
	content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return mutant{}, fmt.Errorf("read mutant: %w", err)
	}
	m, err := parse(string(content))
	if err != nil {
		return mutant{}, fmt.Errorf("mutant %s: %w", filepath.Base(path), err)
	}
	m.path, m.name = path, strings.TrimSuffix(filepath.Base(path), ".patch")
	return m, nil
}

// changed finds the files of a diff; what is new or deleted has /dev/null on one side.
var changed = regexp.MustCompile(`(?m)^--- a/(\S+)\n\+\+\+ b/(\S+)$`)

// parse splits a patch into header and diff.
func parse(text string) (mutant, error) {
	var m mutant
	start := strings.Index(text, "\n--- ")
	if start < 0 {
		return m, errors.New("holds no diff")
	}
	for line := range strings.Lines(text[:start+1]) {
		if err := m.header(strings.TrimSpace(line)); err != nil {
			return m, err
		}
	}
	for _, found := range changed.FindAllStringSubmatch(text[start+1:], -1) {
		if found[1] != found[2] {
			return m, fmt.Errorf("renames %s", found[1])
		}
		m.files = append(m.files, found[1])
	}
	switch {
	case len(m.files) != strings.Count(text, "\n--- "):
		return m, errors.New("may change files only, not add or delete them")
	case len(m.rules) == 0 || len(m.tests) == 0 || m.why == "":
		return m, errors.New("needs rule, test and why")
	}
	return m, nil
}

// header takes one line of the header.
func (m *mutant) header(line string) error {
	if line == "" {
		return nil
	}
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch key {
	case "rule":
		m.rules = append(m.rules, value)
	case "why":
		m.why = strings.TrimSpace(m.why + " " + value)
	case "test":
		words := strings.Fields(value)
		if len(words) < 2 {
			return fmt.Errorf("%q: package and tests are needed", line)
		}
		m.tests = append(m.tests, tests{pkg: words[0], names: words[1:]})
	case "red":
		if m.hangs = value == "hang"; !m.hangs {
			return fmt.Errorf("%q: can only be hang", line)
		}
	default:
		return fmt.Errorf("unknown header %q", line)
	}
	return nil
}
