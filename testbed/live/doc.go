// Package live is `testbed up`: agents as real processes, what they report of
// their leader as it happens, and faults by key, or a scenario that is played.
//
// It guarantees that a run that was given a time ends with an error unless the
// agents that run agree at its end, all has happened that was to happen, and no
// two agents led at once (with quorum); that the terminal is as it was when Run
// returns; and that the agents are gone then.
//
// It does not measure: package bench does, many times over. What it shows of a
// takeover comes from the agents' own stamps, see package observe; what it
// shows of a lease is as old as the last poll.
//
// The session is one goroutine that owns everything it shows. Rendering is a
// pure function of a Model.
package live
