// Package leasepage is the lease page: a small file for each election, kept by the agent
// of this host and mapped by programs, which shows whether that agent leads, in which
// term and until when, at the cost of a few memory reads and a reading of the clock.
//
// It guarantees that a reader sees values which were written together, or none; that a
// lease is never reported at or after its deadline on CLOCK_BOOTTIME, whatever became of
// the agent: frozen, killed, or gone with its files left behind, over a suspend or a
// reboot of the host; that from the moment a writer's Set returns no check that begins
// later reports the value before it; that a page of another election, version or host
// boot, a page that is damaged or cut short, and a file that is not a page hold no lease;
// and that neither reading nor writing ever ends the process, even if the file shrinks or
// its disk is full beneath the mapping.
//
// It does not guarantee that the agent still leads when the caller acts on the answer: an
// act that begins inside the lease may end outside of it, and a leadership that is given
// up ends at once for a program that only reads the page. Give the term to what is acted
// upon, or be a candidate in the election and be notified. The page is about the agent,
// not about one program: a program that is a candidate compares the term with the one in
// which it was elected. It is believed because only the agent's user and root may write
// it. Both sides must be of one time namespace, as the programs of a host are unless
// somebody made another.
//
// The method is the sequence lock with two copies, as in Linux's seqcount_latch: a writer
// that is stopped between two stores blocks no reader. The layout is in docs/api.md and
// below, and versioned.
package leasepage
