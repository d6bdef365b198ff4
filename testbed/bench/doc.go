// Package bench measures what Doyen promises of speed and size: cold start,
// takeovers of every kind, whether two ever lead at once, what an idle agent
// costs, how fast it answers, how big it is.
//
// It guarantees that it measures the product as it is shipped, each agent in
// its own process; that a takeover is counted from the instant just before
// the fault to the instant stamped by the new leader itself, both on the
// machine's CLOCK_BOOTTIME, so that watching adds nothing to it but the load of
// the watching; and that every round is in the report, in Go's benchmark format
// (https://golang.org/design/14313-benchmark-format), for benchstat to compare.
// Of hundreds of thousands of calls it keeps a thousand, evenly chosen.
//
// It does not show how networks behave: the agents share this machine's
// loopback and its processors, with each other and with whatever else runs.
// Absolute figures move with the machine; compare within one run, or runs of
// one machine. A p99 is the nearest rank, so that of less than a hundred samples
// is their maximum.
//
// A part (parts.go) is what --only names. Most are experiments: a fault hits the
// leader, round after round (experiment.go, fault.go). Others put candidates,
// readers or watchers on agents. What each figure is called, and what it may be
// at most, is in measures.go.
package bench
