// Package wrap says what failed. It guarantees that nil stays nil, so that a function can end with it.
package wrap

import "fmt"

// Error returns the error with what failed before it, as "what: err"; nil for nil. What is formatted as
// fmt.Sprintf does.
func Error(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}
