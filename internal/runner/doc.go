// Package runner runs a command exactly while this host's candidacy leads an
// election, and has it dead before the lease can end.
//
// Three processes share the work. The runner (Run) campaigns and decides. Its guard
// (Guard), a second process of the same program, starts the command, keeps the
// deadline too, and kills. The command and all that descends from it are children of
// the guard.
//
// It guarantees, on Linux:
//
//   - The command is started only inside the lease. Unless the lease is renewed,
//     SIGTERM goes to its process group no later than when a third of the lease is
//     left, and SIGKILL to everything that descends from it no later than when a
//     tenth is left, and never less than 50 ms, or a quarter of a shorter lease.
//   - Runner and guard each see to that by their own reading of CLOCK_BOOTTIME: it
//     holds if the agent is frozen or dead, if the runner is frozen or killed, or if
//     the guard is.
//   - Descendants that left the process group or the session, or whose parent has
//     ended, are found: runner and guard are both subreapers, and neither takes the
//     command for dead before the kernel reports that no child is left.
//   - The receipt is given only then, and nothing else counts: the runner campaigns
//     with "proof":false, since its end, and the guard's, prove nothing about what
//     the command had started. The command and the guard hold copies of the
//     campaign's connection, so the candidacy lasts as long as one of them does.
//
// It does not guarantee that a process dies on SIGKILL in time. A process that waits
// in the kernel for a disk dies when the kernel lets it; one that changed to another
// user can't be killed by this one; one that runs again after a freeze, before the
// guard does, acts for a moment after its lease. No receipt is given then, but the
// lease ends. Nor does it reach what the command had started elsewhere, by a service
// manager or a container engine. If runner and guard are killed at the same moment,
// the kernel kills the command (PR_SET_PDEATHSIG), but not what it left behind;
// nobody gives a receipt then, so the agent waits for the lease's end. On systems
// other than Linux only the process group is known.
//
// Deadlines are instants of CLOCK_BOOTTIME in nanoseconds.
package runner
