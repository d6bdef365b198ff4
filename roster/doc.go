// Package roster is one agent's part in changes of the roster, and in bringing the newest roster
// to all voters. A Change is given Facts and returns a Verdict, as a contest does. Package
// quorum decides what a voter accepts, and in which order a ballot's proposals come.
//
// Command accepts a change that was asked for at this agent. Advance then makes the agent a candidate in
// the roster election. The leader of that election drives the change, with its term as the ballot
// (beginDriving, drive). If that leader is lost, a voter continues the change that it left (R3, inherits).
// The reply to the command follows when the outcome is committed (finishWanted). Learn adopts a newer
// roster (R2), and bringUp sends the present one to agents that have another.
//
// Together with package quorum's voters it guarantees that committed rosters form one sequence. A
// change of voters counts only when majorities of the old and of the new voters have accepted it. So
// a change may never end. R1 and the like are rules of docs/guarantees.md.
package roster
