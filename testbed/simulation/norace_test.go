//go:build !race

package simulation

// defaultSeeds take some four seconds on two processors.
const defaultSeeds = 300
