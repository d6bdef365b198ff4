// Package elector composes selection, detection and authority into one agent's
// part in every election: a pure step from an instant and an input to an
// ordered output.
//
// It guarantees, together with the electors of the other agents and as far as
// clocks keep their stated drift: at most one holder inside its lease (G1),
// terms that only rise (G2), a leader that withdraws before its lease ends
// (G3), and that no follower names a leader whose lease is over (G5). It never
// panics on what a peer sends: what should not have come is counted and
// dropped. It does not guarantee that whoever acts on a leader's behalf stops
// in time: that is the caller's part, between a Withdrawal and its Stopped.
//
// With quorum, nothing is sent, granted or announced before the state it rests
// on is durable; without, terms are written as they are led. Equal inputs at equal instants give equal outputs.
package elector
