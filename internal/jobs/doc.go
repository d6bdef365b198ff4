// Package jobs decides when a job that shall run once starts, on a durable word of an election. It
// is `doyen once` and `doyen cron` without clock, processes and network: a Job takes events and the
// time, and returns what to write, start and report.
//
// An occurrence is a time in the schedule of a cron job, or a key. It is claimed in the word before it
// starts, and its end is marked there:
//
//	due → claimed → finished, failed, timed out, stopped
//	 └→ missed       └→ unknown → skipped, or claimed again
//
// The caller must do as Output says. Only a leader's program may write the word, each write must replace the
// one that it names, and a command must be dead before its leadership can have ended. Then a Job guarantees:
//
//   - An occurrence starts once. Only with Config.Rerun it starts again, after the term in which it
//     was started has ended without a mark of its end, and then under a higher term (J2, J4).
//   - No occurrence is passed over in silence: the write that passes over it says why, and is reported
//     by the leader that made it or by the next one (J3, J5, J6).
//   - Clocks that differ by a minute shift a start and repeat nothing (J1). A clock that jumps or is
//     an hour behind what is done claims nothing (J7).
//
// It does not guarantee that an occurrence runs, nor that one with an unknown end did or did not do its
// work: exactly once does not exist. A report may come twice. It does not stop a command: a timeout
// and the lease are the caller's.
package jobs
