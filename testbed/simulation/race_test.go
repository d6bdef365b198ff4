//go:build race

package simulation

// defaultSeeds fit into some ten seconds with the race detector, which has
// nothing to find inside a run: it has one goroutine.
const defaultSeeds = 60
