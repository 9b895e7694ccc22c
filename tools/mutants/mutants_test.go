package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module makes a repository of one small module, with mutants by name and header.
func module(t *testing.T, mutants map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, root, "go.mod", "module small\n\ngo 1.26\n")
	write(t, root, "sum/sum.go", "package sum\n\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n")
	write(t, root, "sum/sum_test.go", `package sum

import "testing"

func TestSum(t *testing.T) {
	if Sum(2, 3) != 5 {
		t.Error("2 + 3 is not 5")
	}
}

func TestZero(t *testing.T) {
	if Sum(0, 0) != 0 {
		t.Error("0 + 0 is not 0")
	}
}

func TestRed(t *testing.T) { t.Error("red by itself") }
`)
	for name, text := range mutants {
		write(t, root, filepath.Join(folder, name+".patch"), text)
	}
	git := exec.CommandContext(t.Context(), "git", "init", "-q")
	git.Dir = root
	out, err := git.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// sums returns a mutant that gives Sum another body, and names the tests.
func sums(body, tests, more string) string {
	return fmt.Sprintf(`rule: sums are right
test: sum %s
why: it is all there is
%s
--- a/sum/sum.go
+++ b/sum/sum.go
@@ -3,3 +3,3 @@
 func Sum(a, b int) int {
-	return a + b
+	%s
 }
`, tests, more, body)
}

func TestEveryMutantGetsItsVerdict(t *testing.T) {
	t.Parallel()
	mutants := map[string]string{
		"01-caught":     sums("return a - b", "TestSum", ""),
		"02-survivor":   sums("return b + a", "TestSum", ""),
		"03-one-of-two": sums("return a - b", "TestSum TestZero", ""),
		"04-broken":     sums("return nothing", "TestSum", ""),
		"05-stale":      strings.Replace(sums("return a", "TestSum", ""), "return a + b", "return a * b", 1),
		"06-panics":     sums(`panic("no")`, "TestSum", ""),
		"07-hangs":      sums("select {}", "TestSum", "red: hang\n"),
	}
	root := module(t, mutants)
	all, err := load(root, "")
	require.NoError(t, err)
	lab, err := newLab(t.Context(), root)
	require.NoError(t, err)
	defer lab.close()
	lab.hangTime, lab.testTime = second, 20*second
	require.NoError(t, lab.baseline(t.Context(), all))

	verdicts := map[string]verdict{}
	silent, err := os.Open(os.DevNull)
	require.NoError(t, err)
	for _, r := range lab.tryAll(t.Context(), all, 2, newProgress(silent, len(all))) {
		verdicts[r.name] = r.verdict
	}

	require.Equal(t, map[string]verdict{
		"01-caught": verdictCaught, "02-survivor": verdictSurvived, "03-one-of-two": verdictSurvived,
		"04-broken": verdictBuild, "05-stale": verdictApply, "06-panics": verdictCaught, "07-hangs": verdictCaught,
	}, verdicts)
	content, err := os.ReadFile(filepath.Join(root, "sum", "sum.go"))
	require.NoError(t, err)
	require.Contains(t, string(content), "a + b", "the tree itself is never touched")
}

func TestARunThatDoesNotEndIsNotRedByItself(t *testing.T) {
	t.Parallel()
	root := module(t, map[string]string{"01-hangs": sums("select {}", "TestSum", "")})
	all, err := load(root, "")
	require.NoError(t, err)
	lab, err := newLab(t.Context(), root)
	require.NoError(t, err)
	defer lab.close()
	lab.testTime = second

	require.Equal(t, verdictHang, lab.try(t.Context(), &all[0]).verdict)
}

func TestATestThatCatchesNothingIsToldBeforeAnyMutantIsTried(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"TestRed":     "red without any mutant: TestRed",
		"TestNowhere": "test not found: sum TestNowhere",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := module(t, map[string]string{"01-any": sums("return a", "TestSum "+name, "")})
			all, err := load(root, "")
			require.NoError(t, err)
			lab, err := newLab(t.Context(), root)
			require.NoError(t, err)
			defer lab.close()

			require.ErrorContains(t, lab.baseline(t.Context(), all), want)
		})
	}
}

func TestAMutantIsChosenByTheBeginningOfItsName(t *testing.T) {
	t.Parallel()
	root := module(t, map[string]string{
		"01-one": sums("return a", "TestSum", ""), "02-two": sums("return b", "TestSum", ""), "12-three": sums("return 0", "TestSum", ""),
	})
	chosen, err := load(root, "02, 12-th")
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	require.Equal(t, "02-two", chosen[0].name)
	require.Equal(t, "12-three", chosen[1].name)

	_, err = load(root, "2")
	require.ErrorContains(t, err, "no mutant")
}

func TestAHeaderSaysAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	diff := "\n--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b\n"
	m, err := parse("rule: r\nrule: s\ntest: internal/x TestA TestB\nwhy: because\nwhy: of that\nred: hang\n" + diff)
	require.NoError(t, err)
	require.Equal(t, mutant{
		rules: []string{"r", "s"}, tests: []tests{{"internal/x", []string{"TestA", "TestB"}}},
		why: "because of that", hangs: true, files: []string{"x.go"},
	}, m)

	for text, want := range map[string]string{
		"rule: r\ntest: x TestA\nwhy: w\n":                                              "no diff",
		"rule: r\ntest: x TestA\n" + diff:                                               "needs rule, test and why",
		"rule: r\ntest: x\nwhy: w\n" + diff:                                             "package and tests",
		"rule: r\ntest: x TestA\nwhy: w\nred: maybe\n" + diff:                           "can only be hang",
		"rule: r\ntest: x TestA\nwhy: w\nnote: this\n" + diff:                           "unknown header",
		"rule: r\ntest: x TestA\nwhy: w\n\n--- a/x\n+++ b/y\n":                          "renames",
		"rule: r\ntest: x TestA\nwhy: w\n\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+a\n": "files only",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want, text)
	}
}
