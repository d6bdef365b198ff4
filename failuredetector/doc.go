// Package failuredetector turns the arrivals of one agent's heartbeats into trust or
// suspicion: by the phi-accrual detector of N. Hayashibara, X. Défago, R. Yared and T.
// Katayama, "The φ Accrual Failure Detector", SRDS 2004.
//
// A silent agent is suspected at some instant between two heartbeat intervals and a lease
// after its last heartbeat. The paper has no such bounds, and its estimate may be far off if
// arrivals are not normally distributed. The instant of suspicion is known in advance, so
// callers sleep until then. Memory is bounded.
//
// The detector may be wrong: it suspects an agent that is slower than ever before, and
// trusts the agent again at its next heartbeat. Suspicion starts a selection, and takes no
// authority from an agent.
//
// Instants must be of one clock. An instant before the last one is ignored.
package failuredetector
