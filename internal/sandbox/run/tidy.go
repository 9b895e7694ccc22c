package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tidy removes the run folder, unless it is to be kept or may explain what went wrong.
func (r *runner) tidy(wrong error) error {
	switch {
	case r.parts == nil || r.parts.dir == "":
		return nil
	case r.options.Keep:
		r.console.Say("kept: %s", r.parts.dir)
		return nil
	case wrong == nil, errors.Is(wrong, ErrBrokenOff), !logged(r.parts.dir):
		return os.RemoveAll(r.parts.dir)
	}
	// Under another name, or the next run would sweep it away.
	failed := filepath.Join(filepath.Dir(r.parts.dir), "billing-sandbox-failed-"+filepath.Base(r.parts.dir))
	if err := os.Rename(r.parts.dir, failed); err != nil {
		return fmt.Errorf("keep the run folder: %w", err)
	}
	r.console.Say("logs of what went wrong: %s", failed)
	return nil
}

// logged reports whether a folder holds anything that may explain a failure.
func logged(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || entry.IsDir() || info.Size() > 0 {
			return true
		}
	}
	return false
}
