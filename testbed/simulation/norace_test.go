//go:build !race

package simulation

// defaultSeeds are what CI plays with TestSimulation: they take some four seconds on two processors.
const defaultSeeds = 300
