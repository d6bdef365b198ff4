// Package plan answers what would happen if hosts went down, links were cut or leaders handed over. It
// runs the real elector in virtual time, from a snapshot of the live state, with one elector for each
// agent that votes or is a candidate.
//
// It guarantees that the code that decides here is the code that decides in reality, and that equal snapshots,
// faults and seeds give equal answers. Each answer comes from several runs, with random delays of links and
// disks. If the runs differ, the answer is a range. The package is pure: it reads no clock, and does nothing to
// the agents in the snapshot.
//
// It knows only what the agent that made the snapshot knows. It assumes that agents reach each other as that
// agent sees it, and that hooks and programs stop at once. Among candidates with equal priority, the oldest
// ranks first. In half of the runs, hosts go down silently, as in a power cut. In the others they close their
// connections, as in a crash. Reality also depends on what a plan does not include.
package plan
