// Package mutants shows that the tests notice the errors that they exist for. It makes
// known-bad changes to the real code, one at a time, and runs the suite on each until a test
// fails.
//
// A change is applied exactly as written, or reported as one that no longer applies. The source
// tree is never touched: the go command reads the changed files through its -overlay. A change
// that does not compile never counts as caught, and a hanging test counts only as a timeout. The
// suite has to pass without any change, so that a failure shows something.
//
// It does not show that the tests find every error. It shows that they find these: the errors
// that this protocol must not have, and errors that others made before us. A test may also fail
// for another reason than the change, so the report names the test.
//
// Each file of testdata is one change. Its head describes what it breaks. Then it names a
// package and a declaration in it (a function, Type.method, a type, a variable, a constant, or
// "import"), and has lines to remove (-), lines to add (+), and lines beside them that stay (space):
// an expression or statements that occur once in that declaration. If no line is removed or
// stays, the added lines begin the function. So a mutant still applies when its code moves to
// another file of the package, or when code nearby changes.
package mutants
