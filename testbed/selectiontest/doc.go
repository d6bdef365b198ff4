// Package selectiontest puts selection algorithms on a small network in memory,
// for their tests: it delivers, loses and repeats messages, kills agents and
// moves the time, and writes down what happened so that a person can read it.
//
// It plays the elector's part as far as selection needs one: it gives each agent
// its field, starts nobody by itself, asks for no votes, and ends a round where
// a newer Coordinator or Elected arrives. Messages take no time; time moves only
// when told to. Equal calls give equal traces.
//
// It promises nothing about clocks, goroutines or real networks: it has none.
package selectiontest
