// Package lab is a cluster of real agents under watch: what scenarios, the soak,
// the live view and the bench have in common.
//
// A Lab follows elections at all its hosts, notices when processes end, lets
// faults begin and end, runs programs on hosts, and makes a recording of all that.
// Whatever is seen wakes those who wait for it, so nothing waits for time to pass.
//
// It guarantees that instants are readings of the machine's CLOCK_BOOTTIME, also
// those of hosts whose clocks run fast or slow; and that Close ends all processes
// and all goroutines. It does not judge: its users do.
//
// A Lab may be used by several goroutines at once.
package lab
