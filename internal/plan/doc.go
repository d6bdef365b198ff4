// Package plan answers what would happen if hosts went down or links were cut,
// by running the elector itself in virtual time: one for each agent that votes
// or is a candidate, from a snapshot of the live state.
//
// It guarantees that what decides is the code that would decide for real, and
// that equal snapshots, faults and seeds give equal answers. Each answer comes
// from several runs, with random delays of links and disks: what differs among
// them is reported as a range. It is pure: it reads no clock, and does nothing to
// the agents asked about.
//
// It knows no more than the one agent that the snapshot is from. It assumes that
// agents reach each other as that agent sees it, ranks candidates of equal
// priority by their age, and has hooks and programs stop at once. Hosts that go
// down vanish silently in half of the runs, as by a power cut, and close their
// connections in the others, as by a crash. Reality also depends on what nobody
// foresaw.
package plan
