// Package runner runs a command exactly while this host's candidacy leads an
// election, and has it dead before the lease can end.
//
// Three processes share the work. The runner (Run) campaigns and decides. Its guard
// (package guard) starts the command, keeps the deadline too, and kills. The command and
// all that descends from it are children of the guard.
//
// It guarantees, on Linux:
//
//   - The command is started only inside the lease. Unless the lease is renewed, SIGTERM
//     goes to the command's process group when a third of the lease is left or earlier.
//     SIGKILL goes to all its descendants when a tenth is left, but at most 1 s and at
//     least 50 ms, or a quarter of a lease below 200 ms.
//   - Runner and guard each see to that by their own reading of CLOCK_BOOTTIME. So it
//     also holds if the agent is frozen or dead, or if one of runner and guard is frozen
//     or killed.
//   - If the agent dies, the command runs on under the deadlines that it has, and the
//     campaign is resumed with the agent's next process run, if that is there in time.
//   - Descendants that left the process group or the session, or whose parent has
//     ended, are found: runner and guard are both subreapers, and neither takes the
//     command for dead before the kernel reports that no child is left.
//   - The receipt is given only then, and the agent relies on nothing else: the runner
//     campaigns with "proof":false, since the end of runner or guard proves nothing about
//     what the command had started. The command and the guard hold copies of the
//     campaign's connection, so the candidacy lasts as long as one of them does; of a
//     connection by which it was resumed, the guard alone.
//   - A check that fails, hangs or can't be killed, and a command that is silent although it
//     should report, end the leadership in order: the command first, then the receipt. Neither
//     delays what is due by the lease.
//
// What package guard does not guarantee is not guaranteed here. A process that runs again
// after a freeze, before the guard does, acts for a moment after its lease: then no receipt is
// given in time, but the lease ends. If runner and guard are killed at the same moment, the
// descendants of the command live on; then there is no receipt, so the agent waits for the
// lease's end.
package runner
