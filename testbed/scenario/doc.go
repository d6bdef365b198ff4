// Package scenario plays scripts. A script is a text file that starts agents as real processes,
// causes faults of hosts and networks, and states what must be seen then. docs/testbed.md
// describes the language.
//
// Each expectation is checked against the agents' own watch streams and the programs' own stamps,
// whose instants are all readings of the machine's CLOCK_BOOTTIME. An expectation waits for the next
// report, not for a fixed time. A failure shows the script's line, what was seen instead, which agent
// led when, and where the agents' logs are. Only these logs outlive a script: its processes,
// namespaces and other files end with it.
//
// If the machine itself was paused during a play that fails, the play decides nothing, and the
// script is played again. But if two led at once, a term did not rise or an agent panicked, the script fails.
//
// Agents are asked at intervals for what their watch streams do not contain: states, warnings
// and counters; these are only as exact as the intervals. If this machine can't have a fault
// that a script asks for, the script fails; the fault is never skipped silently.
package scenario
