// Package exhaustive explores a small world breadth first: three voters, two
// candidates, one election, in every order in which the things that can happen
// may happen, within stated bounds. Each agent is the product's own contest, selection
// and voter, so there is no second model of the rules to keep in step. What package
// elector does around them, process.go does for one election under one roster.
//
// What happens of itself happens in any order: a message arrives, a write ends,
// an agent that is due is woken, a program that was told to stop says that it
// has, and when nothing of that is left, time passes until the next agent is
// due. Besides, a path may hold a stated number of misfortunes: a message is
// lost, arrives twice, or is late; a write is slow; a process crashes, with the
// write under way on its disk or without, and starts again later as another
// holder; a process is paused; a host is cut off; everybody sleeps for a lease;
// the leader resigns. Bounding the misfortunes and not the length of a path
// reaches the far states that a few of them cause (as delay-bounded scheduling
// does: Emmi, Qadeer, Rakamarić, "Delay-Bounded Scheduling", POPL 2011). Clocks
// run at the edges of the allowed drift, each at its own rate.
//
// With Bounds.Lives agents keep a record, as elector.Elector has them do, and the misfortunes
// are deaths, late messages and resignations. A process dies between two steps, or once it
// has put on record what a message makes it do. Then another lineage begins, or the next
// life with its record, or its keeper ends its programs and tells the others of its end.
//
// It guarantees that every state it counts was reached by such a path and
// passed the checks: at most one holder inside its lease in true time, its
// programs included; each term above all before it; no grant before it is on
// disk; no promise on disk taken back. A violation comes with its shortest
// path. Up to the depth that the result names nothing within the bounds is left
// out.
//
// It does not show what lies beyond the bounds, nor anything about liveness.
// States are told apart by a 64-bit hash of what can matter to the future
// (key.go says what can't), so among ten million states two fall together
// with a probability of about three in a million. Package elector is left to the
// random simulation.
//
// What voters report to a peer that connects is delivered at once, so late and
// lost reports are not seen; a paused agent still learns of connections. A
// clock's rate is fixed for a path, and there is one retry delay an agent. Other
// rates and delays are left to the random simulation, and so are failing writes
// and more agents.
//
// A change of the voters is explored apart, as ballots alone (roster.go): the
// product's own quorum.Driver with voters as plain values, without time, leases
// or terms. It shows that the former and the new voters never decide beside each
// other. From one voter to two, and from two to three, it is complete with two
// drivers; from three to another three it reaches 7 steps in a short run, 12 with
// 1.2 million states, and is complete for one more driver from where the first
// stopped when one of the new voters had heard the end. Leases through a change
// are left to the simulation.
package exhaustive
