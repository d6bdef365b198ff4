// Package elector is one agent's part in all elections: a pure step from an instant and
// an input to an ordered output. What is decided in one election is in package
// contest, what a voter promises in package quorum, and a change of the voters in package
// roster. This package has the rest: peers, the detection of silence, heartbeats for all
// elections at once, and what readers see.
//
// The words are explained in docs/architecture.md; G1 and the like are rules of
// docs/guarantees.md.
//
// # A step
//
// (*Elector).Step, in this order:
//
//	resume         in the first step: repeats what a former life may not have done
//	expireLeases   steps down where a lease is about to end, before anything else
//	handle         the input: a message (receive), a view, a connection, a command
//	lapse          withdraws candidacies of the former life that no Campaign claims
//	settle         sends what has become durable, and handles messages of this agent to itself
//	advance        does what is due by time or by facts that have changed
//	settle         again
//	record         collects what has changed of what the next life must know
//	Persist        the next write of the state, if one is needed
//
// Each election is an entry (entry.go): its Contest, when that is to be advanced, and what
// readers were shown of the election. The entry answers the questions of its Contest
// (contest.Facts), and carry does what the returned verdict asks for. A contest is advanced if
// it received something, if its time has come, or if facts have changed that matter to all
// contests (advanceContests). agenda.go limits how many rounds may be under way at once.
//
// The output is carried out in the order of its fields: Record, Withdraw (stop acting), Persist,
// Send, Redial, Announce, Replies. The answers of this agent's voter wait until what they
// rest on is durable.
//
// # Peers
//
// A peer is another agent as this one knows it by direct contact (peers.go). It is silent if it
// has not answered for a lease, or its heartbeats are overdue (silence.go). A voter is reachable if
// its vote can be had: connected, not silent, able to write, and with the present roster.
//
// # Heartbeats
//
// beat sends one message to each peer for all elections led here, with the claims of all contests.
// The receiver renews what its own voter has promised (heartbeat in messages.go), and gives each
// claim to its contest. The receiver's answer renews the leader's leases (heartbeatAck, renewed).
// It holds a stamp of the receiver's clock, which the next heartbeat echoes. By the echo the
// receiver knows until when the claimed lease certainly runs (claimEnd).
//
// # Lives
//
// An agent that dies and begins another life with the record of the former one goes on as the
// same holder (lives.go). Output.Record has the rows that a step has changed (K1). New takes over
// a former life's record, before anything is received (K4). The agent gives its Campaigns again;
// lapse ends a candidacy that is not given until the last deadline that was announced.
//
// # Guarantees
//
// Together with the electors of the other agents, and as far as clocks keep their
// stated drift: at most one holder inside its lease (G1), terms that only rise (G2), a
// leader that steps down before its lease ends (G3), and no follower that names a leader
// whose lease has expired (G5). No message of a peer makes it panic: an unexpected one is
// counted and dropped. It does not guarantee that programs stop in time: that is the
// caller's part, between a Withdrawal and its Stopped.
//
// With quorum, nothing is sent, granted or announced before the state it rests on is
// durable; without, terms are written as they are led. Equal inputs at equal instants
// give equal outputs.
package elector
