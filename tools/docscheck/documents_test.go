package docscheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryPathThatADocumentNamesIsThere(t *testing.T) {
	t.Parallel()

	for _, document := range []string{"README.md", "docs/fork.md", "docs/rules.md"} {
		paths := regexp.MustCompile("`((?:api|cmd|deploy|docs|internal|migrations|scripts|tools)/[A-Za-z0-9_./-]*)`").
			FindAllStringSubmatch(read(t, document), -1)
		require.NotEmpty(t, paths)

		for _, path := range paths {
			_, err := os.Stat(filepath.Join(root, path[1]))
			require.NoError(t, err, "%s sends its reader to %s", document, path[1])
		}
	}
}

func TestEveryTestThatTheRulesNameIsThere(t *testing.T) {
	t.Parallel()

	var tests strings.Builder

	require.NoError(t, filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var content []byte
			content, err = os.ReadFile(path)
			tests.Write(content)
		}

		return err
	}))

	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(read(t, "docs/rules.md"), -1)
	require.NotEmpty(t, named)

	for _, name := range named {
		require.Contains(t, tests.String(), "func "+name[1]+"(", "docs/rules.md names a test that is not there")
	}
}
