//go:build !race

package simulation

// defaultSeeds fit into some thirty seconds on two processors.
const defaultSeeds = 1000
