// Package each makes one list of another, in the same order and of the same length.
package each

// Of returns what f makes of each element, in the order of the list; nil for an empty list.
func Of[A, B any](list []A, f func(A) B) (all []B) {
	for _, a := range list {
		all = append(all, f(a))
	}
	return all
}
