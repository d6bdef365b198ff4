//go:build !race

package simulation

// defaultSeeds fit into some fifteen seconds on two processors.
const defaultSeeds = 700
