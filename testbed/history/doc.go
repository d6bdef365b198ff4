// Package history judges what the fencing token is for: a resource outside the
// cluster that only the leader should change.
//
// Hosts with the product's own electors run in virtual time under pauses, cuts,
// crashes and lost messages. On each, a program waits to lead, then reads a
// shared register with its token, and goes on adding one to what it read, a
// write for each addition. The register takes what comes with a token at least
// as high as the highest it has seen, and refuses the rest. Each addition and
// each read is recorded with when it was called and when it returned, and
// porcupine (Athalye 2017) decides whether some order of them explains all the
// answers as those of a counter: linearizability (Herlihy and Wing 1990).
//
// It shows that tokens that rise with each leader keep such a counter exact,
// whatever stops a leader between looking at its lease and writing; and that
// without the check at the register a paused leader's late write undoes its
// successor's, so that the lease alone does not suffice.
//
// It does not show that leases are kept (package simulation does), and assumes
// that one program has one write under way at a time, which arrives once.
package history
