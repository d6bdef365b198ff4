package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxPoints bounds how many clusters one run measures.
const maxPoints = 100

// ParsePoints reads lists with commas: numbers of agents, algorithms ("both" is
// bully and ring), profiles. It returns every combination, each once, in that
// order.
func ParsePoints(agents, algorithms, profiles string) ([]Point, error) {
	var numbers []int
	for _, word := range list(agents) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("--agents: %q is not a number", word)
		}
		numbers = append(numbers, n)
	}
	ways := list(strings.ReplaceAll(algorithms, "both", "bully,ring"))
	leases := list(profiles)
	for flag, n := range map[string]int{"--agents": len(numbers), "--algorithm": len(ways), "--profile": len(leases)} {
		if n == 0 {
			return nil, fmt.Errorf("%s: nothing given", flag)
		}
	}
	if n := len(numbers) * len(ways) * len(leases); n > maxPoints {
		return nil, fmt.Errorf("--agents: %d combinations with algorithms and profiles, at most %d can be measured", n, maxPoints)
	}
	var all []Point
	for _, profile := range leases {
		for _, n := range numbers {
			for _, way := range ways {
				if p := (Point{n, way, profile}); !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
	}
	return all, nil
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
