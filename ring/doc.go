// Package ring selects who should lead by the ring algorithm of E. Chang and R.
// Roberts, "An Improved Algorithm for Decentralized Extrema-Finding in Circular
// Configurations of Processes", CACM 22(5), 1979: a token that carries the best
// candidate it has met goes round all candidates in the order of their peer IDs,
// and whoever gets its own token back is the nominee.
//
// It guarantees, when messages arrive within the hop timeout and all agents see
// the same field, that exactly the best candidate able to lead becomes the
// nominee; that every wait ends, with a new token if the last one got lost; that
// no token and no announcement circulates for ever, even after its origin died;
// and that whatever a peer sends, nothing panics and memory stays within a small
// multiple of the field.
//
// It does not guarantee one nominee, nor any, when messages are lost, late or
// the fields differ: that costs time and never safety, because a nominee is
// not yet a leader. Who leads is decided by votes, outside this package. An
// Elected message proves nothing here and is not acknowledged: it may get lost,
// and heartbeats then tell who leads.
//
// Two things are added to the paper. Each hop of a token is acknowledged, and a
// candidate that does not do so in the hop timeout is skipped. And a candidate
// that replaces a worse token by its own makes it a round of its own, so that
// the origin of a token is always the candidate it carries.
//
// It assumes of time only that the instants it is given do not go backwards,
// and of the network nothing: messages may be lost, repeated and reordered.
package ring
