//go:build !race

package simulation

// defaultSeeds fit into some forty seconds on two processors.
const defaultSeeds = 2000
