// Package failuredetector judges from the arrivals of an agent's heartbeats whether to trust or
// suspect it. It is the phi-accrual detector of N. Hayashibara, X. Défago, R. Yared and T.
// Katayama, "The φ Accrual Failure Detector", SRDS 2004.
//
// An agent that falls silent is suspected between two heartbeat intervals and one lease after
// its last heartbeat. The paper has no such bounds, and its estimate may be far off if arrivals
// are not normally distributed. The instant of suspicion is known in advance, so callers can
// sleep until then. Memory is bounded.
//
// The detector may be wrong. It suspects an agent that is slower than ever before, until the
// agent's next heartbeat. A suspicion starts a selection, but ends no leadership.
//
// All instants must be from one clock. An instant before the last one is ignored.
package failuredetector
