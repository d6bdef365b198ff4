// Package quorum is authority: majority arithmetic, the voter's durable
// promises, the holder's lease, the first roster and its changes.
//
// It guarantees, if every agent of a roster follows it and every clock runs
// within 1 ± drift of real time, that at most one holder of an election is
// inside its lease at any instant of real time, and that terms only rise:
// through loss, duplication and reordering of messages, crashes, restarts and
// roster changes. It does not guarantee progress, which needs a majority that
// hears each other, and nothing against agents that lie or disks that forget.
//
// It is pure: time comes in as instants of the local CLOCK_BOOTTIME, writes go
// out through the Ledger, and nothing rests on a state before it is durable.
//
// Leases are those of Gray and Cheriton 1989, votes are Paxos' promises
// (Lamport 1998), joint rosters are Raft's (Ongaro 2014, section 4.3). Rule
// names such as V3 or H2 are those of docs/guarantees.md.
package quorum
