// Package runner runs a command exactly while this host's candidacy leads an
// election, and has it dead before the lease can end.
//
// Three processes share the work. The runner (Run) campaigns and decides. Its
// guard (Guard), a second process of the same program, starts the command, keeps
// the deadline too, and kills. The command and all that descends from it are the
// guard's.
//
// It guarantees, on Linux:
//
//   - The command is started only inside the lease. SIGTERM goes to its process
//     group at the latest when a third of the lease is left that nobody renewed,
//     SIGKILL to everything that descends from it at the latest when a tenth is
//     left, and never less than 50 ms, or a quarter of a shorter lease.
//   - That holds by the reading of CLOCK_BOOTTIME of runner and guard each by
//     itself: if the agent is frozen or dead, if the runner is frozen or killed,
//     or if the guard is.
//   - Descendants that left the process group or the session, or whose parent
//     is gone, are found: runner and guard are both subreapers, and neither calls
//     the command dead before the kernel says that no child is left.
//   - The receipt is given only then, and nothing else counts: the runner stands
//     with "proof":false, since its end, and the guard's, prove nothing about
//     what the command had started. The command and the guard hold copies of the
//     campaign's connection, so the candidacy lasts as long as one of them does.
//
// It does not guarantee that a process dies on SIGKILL in time: one that waits
// in the kernel for a disk dies when the kernel lets it, one that changed to
// another user can't be killed by this one, and one that a thaw lets run on
// before the guard acts for a moment after its lease. No receipt is given then, but
// the lease ends. Nor does it reach what the command had started elsewhere, by a
// service manager or a container engine. If runner and guard are killed at the
// same moment, the command is killed by the kernel (PR_SET_PDEATHSIG) and what
// it left behind is not; nobody gives a receipt then, so the agent waits for the
// lease's end. Elsewhere than on Linux only the process
// group is known.
//
// Deadlines are instants of CLOCK_BOOTTIME in nanoseconds.
package runner
