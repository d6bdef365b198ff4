// Package mutants shows that the tests notice what they are there for: it makes
// known-bad changes to the real code, one at a time, and runs the suite on each
// until a test fails.
//
// It guarantees that a change is applied exactly as written down, or reported
// as one that no longer applies; that the source tree is never touched (the go
// command reads the changed files through its -overlay); that code which does
// not compile never counts as caught, and a test that hangs only as a timeout;
// and that the suite passes without any change, so that a failure means
// something.
//
// It does not show that the tests find every error: only these, which are the
// ones this protocol must not have, and those that others made before us. A
// failing test may also fail for another reason than the change; that is why
// the report names it.
//
// Each file of testdata is one change: what it breaks in its head, then, for
// each package it touches, lines to remove (-), to put in their place (+), and
// to find it by (space).
package mutants
