// Package elector is one agent's part in all elections. Its step is a pure function from an
// instant and an input to an ordered output. Package contest decides in each election, package
// quorum decides what a voter promises, and package roster changes the voters. This package has
// the rest: peers, the detection of silence, heartbeats for all elections at once, and what
// readers see.
//
// docs/architecture.md explains the words; G1 and the like are rules of docs/guarantees.md.
//
// # A step
//
// (*Elector).Step, in this order:
//
//	resume         in the first step: repeats what a former life may have left undone
//	expireLeases   steps down where a lease is about to end, before anything else
//	handle         the input: a message (receive), a view, a connection, a command
//	lapse          withdraws the former life's candidacies that no Campaign has claimed
//	settle         sends messages whose writes are durable, and handles this agent's messages to itself
//	advance        does what is due because of the time, or because facts have changed
//	settle         again
//	record         collects the changes to what the next life must know
//	Persist        the next write of the state, if one is needed
//
// Each election is an entry (entry.go): its Contest, when the Contest is to be advanced, and
// what readers were shown of the election. The entry answers the questions of its Contest
// (contest.Facts), and carry does what the returned verdict asks for. A contest is advanced if
// it received something, if its time has come, or if facts have changed on which all contests
// depend (advanceContests). agenda.go limits how many rounds may be in progress at once, and
// handover.go how many elections an agent that drains or shuts down hands over at once.
//
// The output is carried out in the order of its fields: Record, Withdraw (stop acting), Persist,
// Send, Redial, Announce, Replies. The answers of this agent's voter wait until the state that
// they depend on is durable.
//
// # Peers
//
// A peer is another agent as this one knows it from direct contact (peers.go). It is silent if
// it has not answered for a lease, or its heartbeats are overdue (silence.go). A voter is
// reachable if it is connected, not silent, able to write, and has the present roster.
//
// # Heartbeats
//
// beat sends one message to each peer. It claims all elections that this agent leads. At the
// receiver, the voter renews its promises (heartbeat in messages.go), and each claim goes to its
// contest. The receiver's answer renews the leader's leases (heartbeatAck, renewed). The answer
// has a stamp of the receiver's clock, which the next heartbeat echoes. From the echo the
// receiver knows until when the claimed lease certainly runs (claimEnd).
//
// # Lives
//
// An agent that dies and starts another life with the record of the former one goes on as the same holder
// (lives.go). Output.Record has the rows that a step has changed (K1). New takes over a former life's
// record before anything is received (K4). Then the agent repeats its Campaigns. If one is not repeated by
// the last deadline that programs were given, lapse ends its candidacy.
//
// # Guarantees
//
// Together with the electors of the other agents, and as far as clocks keep their stated drift:
// at most one holder is inside its lease (G1), terms only rise (G2), a leader steps down before
// its lease ends (G3), and no follower names a leader whose lease has expired (G5). No message
// of a peer makes the elector panic: it counts and drops unexpected messages. It does not
// guarantee that programs stop in time: that is up to its caller, between a Withdrawal and its
// Stopped.
//
// With quorum, nothing is sent, granted or announced before the state that it depends on is
// durable. Without quorum, a term is written when it is already led. Equal inputs at equal
// instants give equal outputs.
package elector
