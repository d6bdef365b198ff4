// Package plan answers what would happen if hosts went down, links were cut or leaders handed
// over. It runs the elector itself in virtual time, from a snapshot of the live state: one elector for each
// agent that votes or is a candidate.
//
// It guarantees that the code that decides is the code that decides in reality, and that
// equal snapshots, faults and seeds give equal answers. Each answer comes from several
// runs, with random delays of links and disks. What differs among the runs is reported as a
// range. It is pure: it reads no clock, and does nothing to the agents asked about.
//
// It knows only what the one agent knows that the snapshot is from. It assumes that agents
// reach each other as that agent sees it, and that hooks and programs stop at once. Of
// candidates with equal priority, the oldest ranks first. Hosts that go down vanish silently
// in half of the runs, as in a power cut, and close their connections in the others, as in
// a crash. Reality also depends on what nobody foresaw.
package plan
