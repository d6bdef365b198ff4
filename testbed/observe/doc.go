// Package observe follows a set of agents through their sockets and works out
// who led when: which agents agree, how long a takeover lasted, and whether two
// ever led at once.
//
// It guarantees that instants of leadership are the agents' own: each change in
// an agent's watch carries the reading of the machine's CLOCK_BOOTTIME at which
// the agent made it, so the way through the socket adds nothing. All agents must
// run on one machine, whose clock they share.
//
// An overlap it reports is proven: both agents claimed to lead at that instant.
// The claim of an agent that was frozen or killed lasts as long as the deadline
// it last reported here, so how fine the search is depends on how often the
// agents are polled; what they reported to others is not seen. So does that of an agent
// that reports too late that its lease expired, because it was not let run; one that
// answered in between, and still claimed to lead, is judged by that. Without
// quorum there are no deadlines, and a killed agent's claim ends with it.
//
// Tracker is one election's, Elections puts several together. Recording is what
// was seen in a whole run, as a file that package report draws.
//
// All but Follow and Ask are pure; Follow has the goroutines.
package observe
