// Package observe follows a set of agents through their sockets and works out who led when:
// which agents agree, how long a takeover lasted, and whether two agents ever led at once.
//
// Instants of leadership are the agents' own: each change in an agent's watch carries the
// reading of the machine's CLOCK_BOOTTIME at which the agent made it. So the way through the
// socket adds nothing. All agents must run on one machine, whose clock they share.
//
// An overlap that the package reports is proven: both agents claimed to lead at that instant.
// The claim of an agent that was frozen or killed lasts until the last deadline that it
// reported to this package. Deadlines that it reported to others are not seen, so frequent
// polls find more overlaps. The claim of an agent that could not run, and so reported too late
// that its lease expired, also lasts until its deadline. But if that agent answered in between
// and still claimed to lead, its claim lasts until it took it back. Without quorum there are
// no deadlines, and a killed agent's claim ends with the agent.
//
// A Tracker is about one election; Elections puts several together. A Recording is what was
// seen in a whole run, as a file that package report draws.
//
// Only Follow and Ask talk to agents, and only Follow starts goroutines.
package observe
