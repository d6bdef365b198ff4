// Package leasepage is the lease page: a small file for each election, which the agent of
// this host keeps and programs map. It shows whether that agent leads, in which term and
// until when. A check costs a few memory reads and a reading of the clock.
//
// It guarantees:
//   - A reader sees values that were written together, or none. A check that starts after Set
//     has returned does not report an earlier value.
//   - A lease is never reported at or after its deadline on CLOCK_BOOTTIME. This holds even if the
//     agent is frozen or dead, and even after a suspend or reboot of the host.
//   - A page of another election, layout version or host boot holds no lease. Nor does a page
//     that is damaged or cut short, or a file that is not a page.
//   - Neither reading nor writing ends the process, even if the file shrinks or its disk is full.
//
// It does not guarantee that the agent still leads when the caller acts on the answer. An act that starts
// inside the lease may end after it. A leadership may also be given up without asking a program
// that only reads the page. So send the term along with each act, or be a candidate and be notified. The page is about the
// agent: a program that is a candidate must compare the term with the one in which it was elected. Only the
// agent's user and root may write the page. Reader and writer must be in one time namespace.
//
// The method is a sequence lock with two copies, as in Linux's seqcount_latch: a writer that stops between two
// stores blocks no reader. docs/api.md and layout.go describe the layout, which has a version.
package leasepage
