//go:build !race

package simulation

// defaultSeeds are what CI plays with TestSimulation: they meet all there is.
const defaultSeeds = 300
