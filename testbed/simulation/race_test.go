//go:build race

package simulation

// defaultSeeds take some ten seconds with the race detector. It can find nothing inside a run,
// which has only one goroutine.
const defaultSeeds = 60
