// Package quorum decides which holder may lead. It keeps what this agent has promised as a
// voter, and counts what other voters have promised to this agent. Packages bully and ring only
// choose a nominee. docs/architecture.md explains the words; V3, H2 and the like are rules of
// docs/guarantees.md.
//
// # Parts
//
//	Voter      one agent's votes in all elections: what it has promised, and to which holder
//	Ledger     the durable state, its writes, and the messages that depend on them
//	Lease      the holder's side of one term: until when the holder may act
//	Sends      when each request and heartbeat left; a lease counts from that instant
//	Driver     one change of the roster, which the leader of the roster election carries out
//	Formation  the first roster, which all named agents must accept
//
// An elector owns one Voter, Ledger, Sends and Formation, a Lease for each term that it asks for
// or leads, and a Driver while it changes the roster. All are pure: their caller passes the time
// as instants of the local CLOCK_BOOTTIME, carries out the writes and sends the messages.
//
// # Where decisions are made
//
//   - A vote: Voter.Request (voter.go). objection returns why a request is refused at
//     once, blocked whether it must wait (waiting.go), and judge answers the request.
//   - A majority: Confirmed for votes and renewals; Accepted for a proposed roster.
//   - A lease: Lease.Count, for each grant and each acknowledged heartbeat. The lease
//     counts from the send, and is shortened by the drift. The voter's promise counts from the
//     receipt. So the lease ends first, whichever clock measures it.
//   - A renewal: Voter.Renew extends the voter's promises, Lease.Count the holder's
//     lease (lease.go).
//   - The early end of a term: Voter.Release, which only the term's holder can cause.
//   - A newer roster: Voter.Propose if the roster's driver sends it, Voter.Adopt if a report has it.
//
// # What waits
//
// A message waits at the voter while a write is in progress that the message could contradict
// (V1). A request also waits while a promise to another holder runs (V3), for at most one vote
// timeout. A newer request of the same holder replaces it. The voter has one bounded list of
// waiting messages for each election, and one for the roster. At each event it tries all of them
// again: messages about the roster first, then releases, then requests by rank.
//
// # Durable before sent
//
//	VoteGrant       the grant: term, holder and lease
//	RosterAccept    the roster, and the driver's term in the roster election
//	GenesisAccept   the pending genesis
//	any roster      Voter.Roster returns the roster on disk; only proposals have another one
//
// Ledger.Change returns a generation. A message given to Ledger.WhenDurable leaves when that
// generation is on disk. One write is in progress at a time, and all changes made meanwhile
// share the next write. A renewal writes nothing. So after a restart the voter does not know how
// long its promises run: it treats every grant on record as a promise for the longest possible
// lease (a hold, V5).
//
// # One vote
//
// The agents are a, b and c. Agent a leads in term 4, and dies. Agent b is the nominee and asks for
// term 5. Agent c has promised the election to a until 10:00:01, so b's request waits at c. b asks
// again and again, each time with a new send ID; c keeps only the last request. At 10:00:01 Tick
// finds that c may answer. judge changes the grant on record to term 5 and b, and promises b a lease
// from the receipt on. The election is locked, so other messages about it wait. Ledger.Next returns
// the write. When the caller reports with Ledger.Persisted that the write is durable, Voter.Settle
// unlocks the election and Ledger.Take returns the VoteGrant. b finds in Sends when the request left.
// With its own vote and c's, Lease.Count has a majority: b leads until Lease.End. From then on
// heartbeats renew the promises, and each acknowledgement moves Lease.End.
//
// # Guarantees
//
// If every agent of a roster follows the rules and every clock runs within 1 ± drift of real
// time, at most one holder of an election has an unexpired lease at any instant of real time,
// and terms only rise. This also holds when messages are lost, duplicated or reordered, and through
// crashes, restarts and changes of the roster. Progress is not guaranteed: it needs a majority whose
// messages arrive and whose disks accept writes. Nothing is guaranteed against agents that lie,
// or disks that lose what was written.
//
// Leases are as in Gray and Cheriton 1989, votes are promises as in Paxos (Lamport 1998), and joint
// rosters are as in Raft (Ongaro 2014, section 4.3), except for R10.
package quorum
