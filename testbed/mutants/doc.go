// Package mutants shows that the tests notice the errors that they exist for. It makes
// known-bad changes to the real code, one at a time, and runs the suite on each until a test
// fails.
//
// It guarantees that a change is applied exactly as written, or reported as one that no longer
// applies; that the source tree is never touched (the go command reads the changed files
// through its -overlay); that a change that does not compile never counts as caught, and that a
// hanging test counts as a timeout only; and that the suite passes without any change, so that
// a failure shows something.
//
// It does not show that the tests find every error. It shows that they find these: the errors
// that this protocol must not have, and errors that others made before us. A test may also fail
// for another reason than the change; so the report names the test.
//
// Each file of testdata is one change. Its head describes what it breaks. Then it names a
// package and a declaration in it (a function, Type.method, a type, a variable, a constant, or
// "import"), and has lines to remove (-), lines to add (+), and lines beside them that stay (space):
// an expression or statements that occur once in that declaration. Lines that are only added begin
// the function. So code that moves to another file of its package, or whose neighbours change,
// leaves its mutants as they are.
package mutants
