// A mutant is a patch in testdata/mutants that takes one guarantee out of the
// service: a few lines of diff, led by a header that says which rule of
// docs/rules.md it breaks, which tests have to go red, and why that matters.
//
//	rule:  look again after the intent: batch        the beginning of the rule's row; may be repeated
//	test:  internal/store/protocol TestBatchLooks…   package and tests; each has to fail; may be repeated
//	why:   what a fork that loses this would do to its customers
//	red:   hang                                      only where the tests cannot fail otherwise than by not ending
//
// The tree (what git tracks, and what is new and not ignored) is copied once; the
// copy is never changed. A mutant's files lie beside it and are laid over the copy
// by the go command's -overlay, so that mutants are tested side by side, share one
// build cache, and leave nothing to revert when the run is killed.
//
//	tree ──copy──▶ snapshot ──────────────────┐
//	patch ──git apply──▶ files laid over it ──┴─▶ go test -json ─▶ verdict
//
// First the tests of all mutants run on the unchanged copy: a test that is red by
// itself, or not there, catches nothing. A mutant is caught when every test that it
// names fails. A build that fails, a test that is not found, and a run that does not
// end are not red.
package main
