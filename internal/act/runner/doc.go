// Package runner runs a command only while this host's candidacy leads an election, and makes sure
// that it is dead before the lease can end.
//
// Three kinds of process share the work. The runner (Run) campaigns and decides. Its guard (package guard)
// starts the command, also keeps the deadline, and kills. The command and all its descendants are below the
// guard.
//
// It guarantees, on Linux:
//
//   - The command is started only inside the lease. Unless the lease is renewed, SIGTERM goes to
//     the command's process group when a third of the lease is left, or earlier. SIGKILL goes to
//     all its descendants when a tenth of the lease is left, but never later than 50 ms or earlier
//     than 1 s before the end. Of a lease below 200 ms, a quarter is left at SIGKILL.
//   - Runner and guard each keep these deadlines, with their own reading of CLOCK_BOOTTIME. So the
//     deadlines also hold if the agent is frozen or dead, or if either the runner or the guard is
//     frozen or killed.
//   - If the agent dies, the command runs on under the deadlines that it has. The campaign is
//     resumed with the agent's next process run, if that starts in time.
//   - Descendants that left the process group or the session, or whose parent has ended, are
//     found: runner and guard are both subreapers. Neither treats the command as dead before the
//     kernel reports that no child is left.
//   - The receipt is given only once no child is left. The agent accepts no proof instead: the runner
//     campaigns with "proof":false, since the end of the runner or the guard proves nothing about
//     what the command had started. The command and the guard hold copies of the campaign's
//     connection, so the candidacy lasts as long as one of them does. If the campaign was
//     resumed, only the guard has a copy of the new connection.
//   - A check that fails, hangs or can't be killed ends the leadership: first the command ends, then
//     the receipt is given. A command that does not send a notice in time (READY=1, WATCHDOG=1) ends
//     the leadership in the same way. Neither a check nor a notice delays a deadline of the lease.
//
// It does not guarantee what package guard does not guarantee. After a freeze, a process of the
// command may run again before the guard does, and then acts for a moment after its lease: no
// receipt is given in time, but the lease has ended. If runner and guard are killed at the same
// moment, the descendants of the command live on. Then there is no receipt either, so the agent
// waits for the end of the lease.
package runner
