// Package leasepage is the lease page: a small file for each election, which the agent of
// this host keeps and programs map. It shows whether that agent leads, in which term and
// until when. A check costs a few memory reads and a reading of the clock.
//
// It guarantees:
//   - A reader sees values that were written together, or none. A check that begins after
//     Set has returned does not report the value before.
//   - A lease is never reported at or after its deadline on CLOCK_BOOTTIME, even if the agent
//     is frozen or gone and its files are left, and over a suspend or reboot of the host.
//   - A page of another election, version or host boot, a page that is damaged or cut short,
//     and a file that is not a page hold no lease.
//   - Neither reading nor writing ever ends the process, even if the file shrinks or its
//     disk is full.
//
// It does not guarantee that the agent still leads when the caller acts on the answer. An
// act that begins inside the lease may end outside of it, and a program that only reads the
// page is not asked before a leadership is given up. Give the term to what is acted upon,
// or be a candidate and be notified. The page is about the agent, not about one program: a
// program that is a candidate compares the term with the one in which it was elected. Only
// the agent's user and root may write the page. Both sides must be in one time namespace.
//
// The method is the sequence lock with two copies, as in Linux's seqcount_latch: a writer
// that is stopped between two stores blocks no reader. The layout has a version, and is in
// docs/api.md and layout.go.
package leasepage
