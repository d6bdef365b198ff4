// Package soak runs real agents and programs for hours under random faults, and
// looks at what must never happen.
//
// It guarantees that these are looked for in every round: two agents that lead
// one election at once, two programs that act at once by their own stamps (an
// overlap); a leader whose token is not above every earlier one's; a history of
// the shared counter that no order of its operations explains (package history,
// by porcupine), although the counter's keeper takes only tokens at least as high
// as the highest it has seen; and, once all faults are over, agents that do not
// agree or a program that does not go on in bounded time. At the first of them it
// stops and keeps all logs.
//
// Now and then a program is held up between looking at its lease and writing, so
// that the register's check of tokens has something to refuse.
//
// Which faults strike whom, when and for how long follows from the seed. What
// comes of them does not: processes, disks and clocks are real, so a seed plays
// the same faults again and not the same run. Faults that this machine can't have
// are skipped, and named.
//
// It assumes that all processes share one clock, CLOCK_BOOTTIME.
package soak
