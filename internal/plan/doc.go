// Package plan answers what would happen if hosts went down or links were cut,
// by running the elector itself in virtual time: one for each agent that votes
// or stands, from a snapshot of the live state.
//
// It guarantees that what decides is the code that would decide for real, and
// that equal snapshots, faults and seeds give equal answers. Each answer comes
// from several runs, with random delays of links and disks: what differs among
// them is told as a range. It is pure: it reads no clock, and does nothing to
// the agents asked about.
//
// It does not know more than the one agent the snapshot is from: who can reach
// whom is assumed from what that agent sees, candidates of equal standing are
// ranked by their age, and hooks and programs are assumed to stop at once. Hosts
// that go down are gone silently in half of the runs, as by a power cut, and
// close their connections in the others, as by a crash. What happens next in
// reality also depends on what nobody foresaw.
package plan
