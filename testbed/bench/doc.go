// Package bench measures what Doyen promises of speed and size: cold start,
// takeovers of every kind, whether two ever lead at once, what an idle agent
// costs, how fast it answers, how big it is.
//
// It guarantees that it measures the product as it is shipped, each agent a
// process of its own; that a takeover is counted from the instant just before
// the fault to the instant stamped by the new leader itself, both on the
// machine's CLOCK_BOOTTIME, so that watching adds nothing to it but the load of
// the watching; and that every sample is in the report.
//
// It does not tell how networks behave: the agents share this machine's
// loopback and its processors, with each other and with whatever else runs.
// Absolute figures move with the machine; compare within one run, or runs of
// one machine. A percentile of few samples is the nearest rank, so the p99 of
// less than a hundred is their maximum.
package bench
