// Package each maps a list to another list of the same order and length, and finds elements.
package each

import "slices"

// Of returns f's results for the elements, in the order of the list; nil for an empty list.
func Of[A, B any](list []A, f func(A) B) (all []B) {
	for _, a := range list {
		all = append(all, f(a))
	}
	return all
}

// First returns the first element for which the function `is` returns true, and whether one was found.
func First[T any](list []T, is func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return found, false
}
