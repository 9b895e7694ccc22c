package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// overlay applies the mutant to copies of the files that it changes, in dir, and
// returns the path of a file for the go command's -overlay that puts them in the
// place of those in tree. Dir must lie outside of any repository.
func overlay(ctx context.Context, m *mutant, tree, dir string) (string, error) {
	replace := map[string]string{}
	for _, file := range m.files {
		original, mutated := filepath.Join(tree, file), filepath.Join(dir, "files", file)
		if err := copyFile(original, mutated); err != nil {
			return "", err
		}
		replace[original] = mutated
	}
	patch, err := filepath.Abs(m.path)
	if err != nil {
		return "", fmt.Errorf("find the patch: %w", err)
	}
	apply := exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", patch) //nolint:gosec // the mutant's own file
	apply.Dir = filepath.Join(dir, "files")
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir) //nolint:forbidigo // git's own settings
	if out, err := apply.CombinedOutput(); err != nil {
		return "", fmt.Errorf("git apply: %w: %s", err, strings.TrimSpace(string(out)))
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return path, nil
}

// snapshot makes tree a copy of what git tracks in root, and of what is new and not ignored.
func snapshot(ctx context.Context, root, tree string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	if err := os.RemoveAll(tree); err != nil {
		return fmt.Errorf("empty the copy: %w", err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, file), filepath.Join(tree, file))
		if err != nil && !os.IsNotExist(err) { // deleted, not committed
			return err
		}
	}
	return nil
}

// copyFile copies a file with its mode, and makes the folders it needs.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()) //nolint:gosec // the names are git's
}
