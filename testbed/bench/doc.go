// Package bench measures the speed and size that Doyen promises: the cold start, takeovers of
// all kinds, whether two agents ever lead at once, the cost of an idle agent, how fast an agent
// answers, and the size of the binary.
//
// It measures the product as it is shipped, each agent in its own process. A takeover lasts
// from the instant just before the fault to the instant stamped by the new leader itself. Both
// are readings of the machine's CLOCK_BOOTTIME, so watching a takeover adds only load, not time.
// Every round is in the report, in Go's benchmark format, so that benchstat can compare runs
// (https://golang.org/design/14313-benchmark-format). Of hundreds of thousands of calls the
// report has a thousand, evenly chosen.
//
// The bench does not show how networks behave: the agents share this machine's loopback interface
// and processors with each other and with other programs. Absolute figures depend on the machine:
// compare figures of one run, or runs on one machine. A p99 is the nearest rank, so of fewer than
// a hundred samples it is the maximum.
//
// --only names parts (bench.go). Most parts are experiments: a fault hits the leader in each
// round (experiment.go). In other parts, candidates, readers or watchers put load on agents.
// table.go has the name and the limit of each figure.
package bench
