// Package exhaustive explores a small world breadth first: three voters, two candidates, one
// election. Within stated bounds, it plays everything that can happen in every possible order.
// Each agent is the product's own contest, selection and voter, so there is no second model of
// the rules that could differ. process.go does what package elector does for one election under
// one roster.
//
// Some things happen without a cause, in any order: a message arrives, a write ends, an agent
// that is due is woken, a program that was asked to stop reports that it has. When none of
// these is left, time passes until the next agent is due. Besides, a path has at most a stated
// number of misfortunes: a message is lost, arrives twice, or is late; a write is slow; a
// process crashes, with the write under way on its disk or without, and starts again later as
// another holder; a process is paused; a host is cut off; all agents sleep for a lease; the
// leader resigns. Since the misfortunes are bounded and the length of a path is not, the search
// reaches distant states with few causes, as delay-bounded scheduling does (Emmi, Qadeer,
// Rakamarić, "Delay-Bounded Scheduling", POPL 2011). Clocks run at the edges of the allowed
// drift, each at its own rate.
//
// With Bounds.Lives agents keep a record, as those of elector.Elector do, and the misfortunes
// are deaths, late messages and resignations. A process dies between two steps, or once it has
// recorded its decision on a message. Then either another lineage begins, or the next life begins
// with the record.
//
// A search that tries every order does not end. With Bounds.Swaps it ends: events without a cause then have
// a fixed order, in which messages arrive as they were sent. On each path at most Bounds.Swaps events come
// before their turn. Misfortunes, late messages, and what follows a death still come at any step. So
// TestEveryDeathInTurn visits all states within its bound (Result.Complete). With Bounds.Grain, time passes
// by multiples of the grain, so timers ring late by less than a grain.
//
// Every state that the search counts was reached by such a path and passed the checks. At any
// true time, only one holder is inside its lease, or has programs that act. Each term is above
// all earlier ones. No grant is sent before it is on disk, and no promise on disk is taken back.
// A violation comes with its shortest path. Up to the depth in the result, the search omits
// nothing that is within the bounds.
//
// It shows nothing beyond the bounds, and nothing about liveness. A state is known by a 64-bit
// hash of all that can matter to its future; key.go lists the exceptions. Among ten million
// states, two have the same hash with a probability of about three in a million. The random
// simulation covers package elector.
//
// What voters report to a peer that connects is delivered at once, so late and lost reports do
// not happen. A paused agent still learns of connections. A clock's rate is fixed for a path,
// and each agent has one retry delay. The random simulation covers other rates and delays,
// failing writes, and more agents.
//
// A change of the voters is explored separately, as ballots alone (roster.go): the product's
// own quorum.Driver with voters as plain values, without time, leases or terms. It shows that
// the former and the new voters never both decide. From one voter to two, and from two to
// three, it is complete with two drivers. From three to another three it reaches 7 steps in a
// short run, and 12 with 1.2 million states. There it is complete only for a second driver that
// takes over when one new voter has learnt of the outcome. The simulation covers leases during a
// change.
//
// A change of the lease is explored separately too, and not completely (leases.go): the first few
// steps in every order, then many more at random.
//
// The word of an election is explored separately (words.go), until no state of a small world is left: the
// product's own contests and voters, without time and changes of the voters. In one world a voter's writes take
// time, in another a leader has a second life. No word that a program has written or got is lost, writes form
// a chain, and no voter takes a word at another roster version. A change of the voters with a word is in
// wordchange.go: the product's own driver and catching up.
package exhaustive
