// Package jobs decides when the occurrences of `doyen once` and `doyen cron` start. A job keeps its state in
// the durable word of an election. The package uses no clock, process or network: a Job takes events and the
// time, and returns what to write, start and report.
//
// An occurrence is a time in the schedule of a cron job, or a key. It is claimed in the word before it
// starts, and its end is marked there:
//
//	due → claimed → finished, failed, timed out, stopped
//	 └→ missed       └→ unknown → skipped, or claimed again
//
// The caller must do as Output says. Only a leader's program may write the word, and each write must replace
// the word that it names. A command must be dead before its leadership can have ended. Then a Job guarantees:
//
//   - An occurrence starts once. It starts again only under a higher term: with Config.Rerun if it was
//     stopped or its end is unknown (J2, J4). A key whose command failed also starts again if once is called again.
//   - The word records each end and each miss. The leader that wrote it, or the next leader, reports it
//     (J3, J5, J6).
//   - Clocks that differ by a minute shift a start and repeat nothing (J1). A host claims nothing if its clock
//     has jumped, or is more than an hour behind the newest occurrence in the word (J7).
//
// The package does not guarantee that an occurrence runs. Whether an occurrence with an unknown end did its
// work is not known: exactly once does not exist. A report may come twice. A Job does not stop a command: the
// caller keeps timeout and lease.
package jobs
