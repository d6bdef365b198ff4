// Package selectiontest puts selection algorithms on a small network in memory, for their
// tests. It delivers, loses and repeats messages, kills agents and moves the time. It writes
// down what happened so that a person can read it.
//
// It plays the elector's part as far as selection needs one. It gives each agent its field,
// and ends an agent's round when a newer Coordinator or Elected arrives there. It starts no round
// by itself and asks for no votes. Messages take no time; only a call moves the time. Equal calls
// give equal traces.
//
// It shows nothing about clocks, goroutines or real networks: it has none of them.
package selectiontest
