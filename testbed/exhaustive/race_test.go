//go:build race

package exhaustive

// raceDetector makes everything some ten times slower.
const raceDetector = true
