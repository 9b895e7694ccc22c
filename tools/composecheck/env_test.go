package composecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// variable is one line of .env.example.
type variable struct {
	value string
	set   bool // not commented out
}

func TestExampleNamesEveryVariableOfTheServiceWithItsDefault(t *testing.T) {
	t.Parallel()

	example, settings := exampleVariables(t), settings(t)

	for name, tag := range settings {
		line, ok := example[name]
		require.True(t, ok, "%s is missing in .env.example", name)

		required := strings.Contains(tag.Get("env"), ",required")
		require.Equal(t, required, line.set, "%s: what is required is set, all else is commented out", name)

		if !required {
			require.Equal(t, tag.Get("envDefault"), line.value, "the default of %s", name)
		}
	}

	for name := range example {
		if !strings.HasPrefix(name, "OTEL_") { // those belong to OpenTelemetry
			require.Contains(t, settings, name, "no such variable: %s", name)
		}
	}
}

func TestComposeSetsOnlyVariablesThatExist(t *testing.T) {
	t.Parallel()

	settings := settings(t)

	for name := range load(t).Services["billing"].Environment {
		require.Contains(t, settings, name)
	}
}

// exampleVariables returns the lines of .env.example, set and commented out.
func exampleVariables(t *testing.T) map[string]variable {
	t.Helper()

	variables := map[string]variable{}

	for _, line := range regexp.MustCompile(`(?m)^(#?)([A-Z][A-Z0-9_]*)=(.*)$`).FindAllStringSubmatch(read(t, ".env.example"), -1) {
		require.NotContains(t, variables, line[2], "%s stands twice", line[2])
		variables[line[2]] = variable{value: line[3], set: line[1] == ""}
	}

	require.NotEmpty(t, variables)

	return variables
}

// settings returns the tags of the structs that the environment is read into, by variable.
func settings(t *testing.T) map[string]reflect.StructTag {
	t.Helper()

	tags := map[string]reflect.StructTag{}
	files, err := filepath.Glob(filepath.Join(root, "internal/app/*.go"))
	require.NoError(t, err)

	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)

		ast.Inspect(file, func(node ast.Node) bool {
			field, ok := node.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}

			text, err := strconv.Unquote(field.Tag.Value)
			require.NoError(t, err)

			tag := reflect.StructTag(text)
			if variable, _, _ := strings.Cut(tag.Get("env"), ","); variable != "" {
				tags[variable] = tag
			}

			return true
		})
	}

	require.NotEmpty(t, tags)

	return tags
}
