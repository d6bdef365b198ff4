// Package contest is one election as one agent takes part in it: whether the agent is a candidate, which
// leader it knows, its bid for votes, its leadership, and the end of that leadership. A Contest is given
// Facts and returns a Verdict. It does not know connections, gossip, disks or other elections: package
// elector answers its questions and carries out its verdicts.
//
// docs/architecture.md explains the words; G1, H1, R6 and the like are rules of
// docs/guarantees.md.
//
// # Roles
//
// The role depends on whether the agent has a term (tenure), and whether it asks for one (bid).
//
//	Follower   no term and no bid. It follows the leader whose heartbeats it receives, or seeks one.
//	Nominee    a bid only. Bully or Ring chose this agent, and it asks the voters for their votes.
//	Leader     a term. If it also has a bid, it is about to overtake its own term (R6).
//	Leaving    a term from which it has stepped down, and which it has not released yet.
//
// # The three waits
//
// A candidate waits for its turn: the i-th best waits i × heartbeat/4 after the leader was lost,
// so that the best one starts alone (startInTurn in seeking.go). It waits longer after a failed
// bid, and while the target of a transfer goes first (notBefore).
//
// A nominee waits for promises to end. The voters have promised the old leader to grant nothing to another
// holder until that leader's lease has expired on any clock. A voter keeps a request for one vote timeout. The
// nominee repeats its request, because its lease counts from the newest send (seekVotes in bid.go).
//
// A leader that steps down waits until its programs have stopped, or until the last deadline that
// they know has passed. Then it releases the term (finishLeaving in handover.go, H6).
//
// # A step
//
// Each exported method that takes Facts and returns a Verdict is a step. It reads the
// facts and changes the Contest. The Verdict has programs to stop, messages to send, changes
// to announce, and when Advance is to be called. Advance does what is due by time:
//
//	expireKnown   forgets a leader whose lease has expired
//	lead          keeps a leadership: overtakes its term, gives way to a higher priority
//	finishLeaving releases a term once that is safe
//	seek          follows up a round of selection or a bid, or starts a round
//
// If Ends reports that the lease is about to end, the elector makes this agent step down before any other
// step. So a leader that was frozen does not act on the messages that it receives next.
//
// # A takeover
//
// Leader a is killed; b and c follow it. b's connection to a closes, so b's Advance finds the
// election vacant (seek) and starts a round. No better candidate is left, so the selection makes
// b the nominee. nominate starts a bid for a term that b has never asked for (newTerm, H1). b
// repeats each Vote Request after heartbeat/2, and then every three quarters of a heartbeat.
//
// When the promises to a have ended, the voters write their votes to disk and grant them. VoteGranted
// counts each vote from the send that it answers (H3, H4). When a majority has granted and enough of the
// lease is left (actsUntil), Advance makes b the leader (becomeLeader, H5): b announces that and sends a
// heartbeat at once. Each answer of a voter renews the lease (Renewed in leading.go). On c, Claimed names b
// as the leader until b's lease may have expired (follow, G5).
//
// # Where a program is notified to stop
//
// stepDown in handover.go adds a Withdrawal to Verdict.StepDown, which the elector carries out
// first. It is called when the lease is about to end (Ends), when the rights do not let this agent lead
// (lead), when another agent claims a higher term (Claimed), for a candidate of higher priority
// (giveWay), after a suspend (Suspended), and by command (StepDown, Leave). Stopped takes the receipt.
//
// # Lives
//
// An agent that dies and is back with its record is the same holder (lives.go). Authority is what
// the agent holds, has asked for and has announced. It is on record before anybody sees it (K1), and
// Resume takes it over. If the former life led, this life goes on leading in the same term:
// the lease ends when it would have ended, and only this life's own sends renew it (K4a). If a
// leadership was ending, its release still waits for the programs (K4b). A bid is not continued.
// No term is asked for twice; a higher term is granted at once, because the holder is the same
// (K4c). Overtake takes a higher term if programs must not get the present one (K4d), or the lease differs (K4e).
//
// # Guarantees
//
// With the voters of package quorum: at most one holder is inside its lease (G1), terms only
// rise (G2), and a leader steps down before its lease ends (G3). This assumes that clocks
// keep their stated drift, and that each verdict is carried out in full and at once.
package contest
