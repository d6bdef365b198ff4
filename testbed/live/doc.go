// Package live is `testbed up`. It runs agents as real processes, and shows at once what they
// report of their leader. The person who watches presses a key to cause a fault.
//
// A run that was given a time ends with an error unless the running agents agree at its end,
// everything that was to happen has happened, and no two agents led at once (with quorum).
// When Run returns, the terminal is as it was and the agents are gone.
//
// For measurements use package bench, which repeats each many times. The times of a takeover come
// from the agents' own stamps, see package observe. The time left of a lease is the time until the deadline
// that the last poll returned.
//
// The session is one goroutine that owns everything it shows. Rendering is a pure function of
// a Model.
package live
