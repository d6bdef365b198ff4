//go:build !race

package simulation

// defaultSeeds fit into some four seconds on two processors.
const defaultSeeds = 300
