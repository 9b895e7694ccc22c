package domain

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What comes in from other parts, a database's words for one, may have any
// length and any bytes.
func TestDetailsAreBoundedText(t *testing.T) {
	t.Parallel()
	for name, detail := range map[string]string{
		"long":                 strings.Repeat("x", 10*MaxDetailBytes),
		"cut within a letter":  strings.Repeat("x", MaxDetailBytes-1) + "é",
		"invalid UTF-8":        "a\xffb",
		"all of it is invalid": strings.Repeat("\xff", 10*MaxDetailBytes),
	} {
		fault := invalid(ReasonUnstorable, "", "%s", detail)
		require.True(t, utf8.ValidString(fault.Detail), name)
		require.NotEmpty(t, fault.Detail, name)
		require.LessOrEqual(t, len(fault.Detail), MaxDetailBytes, name)
	}
	require.Equal(t, "a?b", invalid(ReasonUnstorable, "", "a\xffb").Detail)
}
