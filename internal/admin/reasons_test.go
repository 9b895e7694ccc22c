package admin_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// Whoever meets a reason, an outcome or a state in a letter finds it explained.
func TestOperatorsFindEveryNameExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/dead-letters.md")
	require.NoError(t, err)
	var explained []any
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| .+ \\|$").FindAllSubmatch(page, -1) {
		explained = append(explained, string(row[1]))
	}
	want := append(names(domain.Reasons()), names(domain.Outcomes())...)
	require.ElementsMatch(t, append(want, names(domain.LetterStates())...), explained)
}
