package domain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// A reason that is missing from the list could be stored but not filtered by.
func TestReasonsListsEveryDeclaredReason(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	require.NoError(t, err)
	var declared []domain.Reason
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING && !strings.Contains(literal.Value, "/") {
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if value != "slices" {
				declared = append(declared, domain.Reason(value))
			}
		}
		return true
	})
	require.Equal(t, declared, domain.Reasons())
}

func TestReasonsAreDistinctAndValid(t *testing.T) {
	t.Parallel()
	seen := map[domain.Reason]bool{}
	for _, reason := range domain.Reasons() {
		require.True(t, reason.Valid(), reason)
		require.False(t, seen[reason], reason)
		require.Regexp(t, `^[a-z][a-z0-9_]*$`, string(reason))
		seen[reason] = true
	}
	for _, reason := range []domain.Reason{"", "invalid_", "invalid_JSON", "tombstone", "invalid_json "} {
		require.False(t, reason.Valid(), reason)
	}
}
