// Package quorum decides who may lead. It keeps what an agent has promised as a
// voter, and counts what others have promised to it. Packages bully and ring only
// choose a nominee. The words are explained in docs/architecture.md; V3, H2 and the
// like are rules of docs/guarantees.md.
//
// # Parts
//
//	Voter      one agent's votes in all elections: what it has promised to whom
//	Ledger     the durable state, its writes, and the messages that rest on them
//	Lease      the holder's side of one term: until when it may act
//	Sends      when each request and heartbeat left; a lease counts from there
//	Driver     one change of the roster, by the leader of the roster election
//	Formation  the first roster, which all named agents must accept
//
// An elector owns one Voter, Ledger, Sends and Formation, a Lease for each term
// that it asks for or leads, and a Driver while it changes the voters. All are pure:
// time comes in as instants of the local CLOCK_BOOTTIME, and the caller carries out
// writes and sends messages.
//
// # Where it is decided
//
//   - A vote: Voter.Request (voter.go). objection is why a request is refused at
//     once, blocked whether it must wait (waiting.go), judge answers it.
//   - A majority: Confirmed for votes and renewals; Accepted for a proposed roster.
//   - A lease: Lease.Count, for each grant and each acknowledged heartbeat. The lease
//     counts from the send, shortened by the drift. The voter's promise counts from the
//     receipt, so the promise ends later on any clock.
//   - A renewal: Voter.Renew extends the voter's promises, Lease.Count the holder's
//     lease (lease.go).
//   - The early end of a term: Voter.Release, by its holder alone.
//   - A newer roster: Voter.Propose by its driver, Voter.Adopt from a report.
//
// # What waits
//
// A message waits at the voter while a write is in progress that the message could
// contradict (V1). A request also waits while the election is promised to another holder
// (V3), for at most one vote timeout. A newer request of the same holder replaces it. There
// is one bounded list for each election, and one for the roster. All are tried again at each
// event: messages about the roster first, then releases, then requests by rank.
//
// # Durable before sent
//
//	VoteGrant       the grant: term, holder and lease
//	RosterAccept    the roster, and the driver's term in the roster election
//	GenesisAccept   the pending genesis
//	any roster      Voter.Roster returns what is on disk, and only that is sent
//
// Ledger.Change returns a generation, and a message given to Ledger.WhenDurable leaves
// once that generation is on disk. One write is in progress at a time; all changes made
// meanwhile share the next write. A renewal writes nothing. So after a restart the voter
// treats every grant on record as a promise, for the longest lease that may still run (a
// hold, V5).
//
// # One vote
//
// The agents are a, b and c. a leads in term 4, and dies. b is the nominee and asks for
// term 5. c has promised the election to a until 10:00:01, so b's request waits. b asks
// again and again, each time with a new send ID; c keeps the last request. At 10:00:01 Tick
// finds that it may be answered. judge changes the grant on record to term 5 and b, and
// promises b a lease from the receipt. The election is locked, so other messages about it
// wait. Ledger.Next returns the write. When the caller reports it durable, by
// Ledger.Persisted, Voter.Settle unlocks the election and Ledger.Take returns the Vote
// Grant. b finds in Sends when the request left. With its own voter and c, Lease.Count has a
// majority: b leads until Lease.End. From then on heartbeats renew the promises, and each
// acknowledgement moves Lease.End.
//
// # Guarantees
//
// If every agent of a roster follows the rules and every clock runs within
// 1 ± drift of real time, at most one holder of an election has an unexpired lease
// at any instant of real time, and terms only rise: through loss, duplication and
// reordering of messages, crashes, restarts and changes of the roster. Progress is
// not guaranteed: it needs a majority whose messages arrive and whose disks write.
// Nothing is guaranteed against agents that lie, or disks that forget.
//
// Leases are those of Gray and Cheriton 1989, votes are Paxos' promises (Lamport
// 1998), joint rosters are Raft's (Ongaro 2014, section 4.3).
package quorum
