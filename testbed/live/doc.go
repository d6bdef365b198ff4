// Package live is `testbed up`: agents as real processes, and what they report of their leader
// as it happens. Faults come by key.
//
// A run that was given a time ends with an error unless the running agents agree at its end,
// everything that was to happen has happened, and no two agents led at once (with quorum).
// When Run returns, the terminal is as it was and the agents are gone.
//
// The package does not measure: package bench does, many times over. What it shows of a
// takeover comes from the agents' own stamps, see package observe. What it shows of a lease is
// as old as the last poll.
//
// The session is one goroutine that owns everything it shows. Rendering is a pure function of
// a Model.
package live
