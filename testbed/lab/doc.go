// Package lab is a cluster of real agents that is watched. Scenarios, the soak, the live view and
// the bench use it.
//
// A Lab follows elections at all its hosts, notices when processes end, begins and ends faults,
// runs programs on hosts, and makes a recording of all that. Each new report wakes the callers
// that wait for something, so no caller sleeps for a fixed time.
//
// All instants are readings of the machine's CLOCK_BOOTTIME, even of hosts whose clocks run
// fast or slow. Close ends all processes and all goroutines. A Lab does not judge what it sees:
// its users do.
//
// A Lab may be used by several goroutines at once.
package lab
