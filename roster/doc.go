// Package roster is one agent's part in changes of the roster, and in bringing the newest roster to
// all voters. A Change is given Facts and returns a Verdict, as a contest does. What a voter
// accepts, and the order of a ballot's proposals, is in package quorum.
//
// Command accepts a change that was asked for at this agent. Advance then has the agent be a
// candidate in the roster election. Its leader drives the change, with its term as the ballot
// (beginDriving, drive). If it is lost, a voter drives on what it left (R3, inherits). The reply
// follows once the outcome is committed (finishWanted). Learn adopts a newer roster (R2), and
// bringUp sends the present one to the agents that hold another.
//
// With the voters of package quorum, one roster follows another, each confirmed by majorities of
// both. It does not guarantee that a change ends: that takes majorities of both halves. R1 and the
// like are rules of docs/guarantees.md.
package roster
