package docscheck

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryPathOfTheForkGuideIsThere(t *testing.T) {
	t.Parallel()

	paths := regexp.MustCompile("`((?:api|cmd|deploy|docs|internal|migrations|scripts|tools)/[A-Za-z0-9_./-]*)`").
		FindAllStringSubmatch(read(t, "docs/fork.md"), -1)
	require.NotEmpty(t, paths)

	for _, path := range paths {
		_, err := os.Stat(filepath.Join(root, path[1]))
		require.NoError(t, err, "docs/fork.md sends its reader to %s", path[1])
	}
}
