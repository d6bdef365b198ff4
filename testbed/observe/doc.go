// Package observe follows a set of agents through their sockets and works out who led when:
// which agents agree, how long a takeover lasted, and whether two agents ever led at once.
//
// Instants of leadership are the agents' own: each change in an agent's watch carries the
// reading of the machine's CLOCK_BOOTTIME at which the agent made it. So the time on the way
// through the socket does not count. All agents must run on one machine, whose clock they share.
//
// An overlap that the package reports is proven: both agents claimed to lead at that instant.
// The claim of an agent that was frozen or killed lasts until the last deadline that it
// reported to this package. Deadlines that it reported to others are not seen, so frequent
// polls find more overlaps. An agent that could not run reports late that its lease expired: its
// claim, too, ends at its deadline. But if that agent answered a poll between its deadline and its
// report, the claim lasts until the report. Without quorum there are no deadlines, and a killed
// agent's claim ends with its process.
//
// A Tracker is about one election; Elections covers several. A Recording has what was seen in a
// whole run, in a form that can be written to a file. Package report draws a Recording.
//
// Only Follow and Ask talk to agents, and only Follow starts goroutines.
package observe
