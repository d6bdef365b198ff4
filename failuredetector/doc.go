// Package failuredetector turns the arrivals of one agent's heartbeats into
// trust or suspicion: by the phi-accrual detector of N. Hayashibara, X. Défago,
// R. Yared and T. Katayama, "The φ Accrual Failure Detector", SRDS 2004, or by a
// fixed deadline.
//
// It guarantees that a silent agent is suspected, at the latest a lease and at
// the earliest two heartbeat intervals after it was last heard; that the instant
// is known in advance, so that callers sleep until then instead of asking; and
// that memory is bounded, whatever arrives.
//
// It does not guarantee to be right: an agent that is slow beyond what was
// observed is suspected and trusted again with its next heartbeat. Suspicion
// starts a selection and takes no authority from anybody.
//
// It assumes of time only that instants are of one clock; one that goes
// backwards is ignored. Arrivals are taken for normally distributed, as in the
// paper; the bounds hold where they are not.
package failuredetector
