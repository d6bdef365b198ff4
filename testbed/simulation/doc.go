// Package simulation runs the pure electors of a whole cluster in virtual
// time, under faults, and checks what they promise at every step.
//
// One seed decides everything: who takes part, how clocks run, which messages
// are lost, repeated or late, which writes reach the disk, who crashes, and
// when all that ends. Equal seeds give equal runs, so a failure is replayed
// with one command.
//
// A run has a chaos phase, in which safety is checked (G1 to G3 and G5 of
// docs/guarantees.md, that nothing is sent before the state it rests on is
// durable, and that terms never fall, on disk or as told), and a heal phase, in
// which all faults end and one leader agreed by all must exist in bounded time
// and stay (G4). Programs add to a counter that checks fencing tokens, and what it
// answered must be what a counter answers. The checkers see true time, which no
// agent does.
//
// The faults of a seed are a schedule, drawn before the run begins, any of which
// can be left out without changing the others. So Shrink finds the few that make
// a violation, History tells who did what when, and Diagram draws it.
//
// It guarantees that what it reports happened in a world the protocol claims to
// stand: clocks stay within the stated drift and disks keep what they said they
// kept. It does not prove anything: what it never met it can't report. It has
// no sockets, no processes and no real disk; testbed/hosts has those.
//
// The method is that of FoundationDB's simulation (Zhou et al. 2021).
package simulation
