// Package simulation runs the pure electors of a whole cluster in virtual time, under faults,
// and checks at every step what they promise.
//
// One seed decides everything: which agents take part, how clocks run, which messages are lost,
// repeated or late, which writes reach the disk, which agents crash, and when all that ends.
// Equal seeds give equal runs, so one command replays a failure.
//
// A run has two phases. In the chaos phase safety is checked: G1 to G3 and G5 of
// docs/guarantees.md, that nothing is sent before the state it rests on is durable, and that
// terms never fall, on disk or in what agents show. In the heal phase all faults end; within
// bounded time all agents must agree on one leader, and that leader must stay (G4). Programs add
// to a counter that checks fencing tokens, and its answers must be those of a correct counter.
// The checkers see true time; agents do not.
//
// The faults of a seed are a schedule, drawn before the run begins. Any of them can be omitted
// without changing the others. So Shrink finds the few that cause a violation, History records
// what happened when, and Diagram draws it.
//
// Each violation happened in a world that the protocol claims to withstand: clocks stay within
// the stated drift, and disks keep what they acknowledged. A run without a violation proves
// nothing. The simulation has no sockets, no processes and no real disk; testbed/hosts has those.
//
// The method is that of FoundationDB's simulation (Zhou et al. 2021).
package simulation
