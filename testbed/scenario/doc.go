// Package scenario plays scripts: text files that start agents as real
// processes, do to them what hosts and networks suffer, and state what must be
// seen then. The language is in docs/testbed.md.
//
// It guarantees that no expectation is a guess: each is judged by what the
// agents' own watch streams and the programs' own stamps, which are all
// readings of the machine's CLOCK_BOOTTIME, and waits for the next report
// rather than for time to pass. A failure names the script's line, what was
// seen instead, who led when, and where the agents' logs are kept. Nothing
// outlives a script: its processes, namespaces and files end with it.
//
// A play that fails while the machine itself was paused decides nothing, and the
// script is played again, unless two led at once or a term did not rise.
//
// What an agent reports besides who leads (its state, its warnings, its counters)
// is asked for at intervals, and as fine as those. A fault that this machine
// can't have fails the script that asks for it; it is never skipped silently.
package scenario
