// Package soak runs real agents and programs for hours under random faults, and looks for what
// must never happen. In every round it looks for:
//
//   - two agents that lead one election at once, or two programs that act at once by their
//     own stamps (an overlap)
//   - a leader whose token is not above every earlier leader's
//   - an addition to the shared counter that is not to its newest value, although the counter
//     takes only tokens at least as high as the highest it has seen
//   - agents that do not agree, or a program that does not go on, in bounded time after all
//     faults are over
//
// With Options.Doyen the programs are jobs run by `doyen once`, in place of the counter. The stamps of
// the jobs' commands must show that no two jobs of a series ran at once, and that none was started
// twice. With --retry a job may be started again under a higher term, until it is reported as
// finished. A job that was not started must be reported as unknown.
//
// At the first violation the soak stops and keeps all logs.
//
// Now and then a program is held up after it looked at its lease and before it writes. Its token
// may then be old, and the counter must refuse the write.
//
// The seed decides which faults strike which hosts, when and for how long. It does not decide
// their effects: processes, disks and clocks are real. So the same seed plays the same faults
// again, but not the same run. Faults that this machine can't have are skipped, and named.
//
// All processes have to share one clock, CLOCK_BOOTTIME.
package soak
