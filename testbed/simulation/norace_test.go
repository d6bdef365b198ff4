//go:build !race

package simulation

// defaultSeeds fit into some six seconds on two processors.
const defaultSeeds = 450
