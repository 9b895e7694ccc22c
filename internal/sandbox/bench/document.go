package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Sections of the document, each between its two marks; all else in it is written by hand.
const (
	sectionMain      = "main"
	sectionGrowth    = "growth"
	sectionRetention = "retention"
)

func marks(section string) (begin, end string) {
	return "<!-- measured: " + section + " -->", "<!-- end of measured: " + section + " -->"
}

// WriteDocument puts table and machine into their section of a Markdown file, which is made where it is missing, and everything
// measured into a JSON file beside it. It returns the path of the latter.
func (r *Report) WriteDocument(path, section string) (data string, err error) {
	content, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if errors.Is(err, fs.ErrNotExist) {
		content, err = blank(), nil
	}
	if err != nil {
		return "", fmt.Errorf("write the document: %w", err)
	}
	base := strings.TrimSuffix(path, filepath.Ext(path))
	data = base + ".json"
	if section != sectionMain {
		data = base + "-" + section + ".json"
	}
	content, err = replace(content, section, r.markdown(filepath.Base(base)+".svg"))
	if err != nil {
		return "", fmt.Errorf("write the document %s: %w", path, err)
	}
	var encoded bytes.Buffer
	if err := r.WriteJSON(&encoded); err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(data, encoded.Bytes(), 0o644), os.WriteFile(path, content, 0o644)); err != nil { //nolint:gosec // documents
		return "", fmt.Errorf("write the document: %w", err)
	}
	return data, nil
}

// blank is a document without a word.
func blank() []byte {
	var b strings.Builder
	b.WriteString("# Benchmarks\n")
	for _, section := range []string{sectionMain, sectionGrowth, sectionRetention} {
		begin, end := marks(section)
		fmt.Fprintf(&b, "\n%s\n%s\n", begin, end)
	}
	return []byte(b.String())
}

// replace puts text between the marks of a section.
func replace(content []byte, section, text string) ([]byte, error) {
	begin, end := marks(section)
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return nil, fmt.Errorf("it has no section between %s and %s", begin, end)
	}
	return []byte(before + begin + "\n\n" + strings.TrimSpace(text) + "\n\n" + end + after), nil
}

// markdown is the report for the document; plot is the file that the points are drawn into.
func (r *Report) markdown(plot string) string {
	var b strings.Builder
	t := r.table()
	t.Style().Format.Header = text.FormatDefault
	b.WriteString(t.RenderMarkdown() + "\n\n")
	for line := range strings.SplitSeq(r.Summary(), "\n") {
		b.WriteString(line + ".\n")
	}
	if r.Scale != 1 {
		fmt.Fprintf(&b, "\n**Scale %g: a small run.** The goals are meant for scale 1; short runs show starts and ends more than the way between.\n", r.Scale)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n- %s", note)
	}
	if len(r.Points) > 0 {
		fmt.Fprintf(&b, "\n\n![Throughput by the provider's latency](%s)\n", plot)
	}
	b.WriteString("\n\n" + r.Facts.markdown())
	return b.String()
}

// markdown lists the machine.
func (f *Facts) markdown() string {
	lines := []string{
		fmt.Sprintf("Measured on %s with billing %s:", f.Date, f.Version), "",
		fmt.Sprintf("- %d cores (%s), %.0f GB, shared by all parts", f.Cores, f.CPU, f.MemoryGB),
		fmt.Sprintf("- %s, kernel %s; load average at the start %s", f.OS, f.Kernel, f.Load),
		fmt.Sprintf("- disk: %s appends of 8 KiB with fsync a second", thousands(f.Fsync, 0)),
		fmt.Sprintf("- %s, PostgreSQL %s", f.Go, f.Postgres),
	}
	return strings.Join(lines, "\n")
}
