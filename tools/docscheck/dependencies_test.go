package docscheck

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// root is the repository, seen from this package's folder.
const root = "../.."

func TestEveryImportedModuleHasItsReasonAndNoOtherHas(t *testing.T) {
	t.Parallel()

	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1)
	reasons := make([]string, 0, len(rows))

	for _, row := range rows {
		require.NotEmpty(t, strings.TrimSpace(row[2]), "the reason of %s", row[1])
		reasons = append(reasons, row[1])
	}

	require.ElementsMatch(t, importedModules(t), reasons)
}

// importedModules returns the modules of go.mod that any Go file of the service, its sandbox or its tests imports.
// It looks at the imports and not at `// indirect`, which depends on who ran which go command last.
func importedModules(t *testing.T) []string {
	t.Helper()

	file, err := modfile.Parse("go.mod", []byte(read(t, "go.mod")), nil)
	require.NoError(t, err)

	used := map[string]bool{}

	for path := range importedPackages(t) {
		module := ""

		for _, requirement := range file.Require {
			candidate := requirement.Mod.Path
			if within(path, candidate) && len(candidate) > len(module) {
				module = candidate
			}
		}

		if module != "" {
			used[module] = true
		}
	}

	require.NotEmpty(t, used)

	return slices.Sorted(maps.Keys(used))
}

// importedPackages returns the import paths of every Go file outside this module.
func importedPackages(t *testing.T) map[string]bool {
	t.Helper()

	imports := map[string]bool{}

	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == filepath.Join(root, "tools") || strings.HasPrefix(entry.Name(), ".") && path != root):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}

		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}

			imports[name] = true
		}

		return nil
	}))

	return imports
}

// within reports whether a package may belong to a module by its path.
func within(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)

	return string(content)
}
