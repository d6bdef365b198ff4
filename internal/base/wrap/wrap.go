// Package wrap adds to an error what failed. It guarantees that nil stays nil, so callers need no check.
package wrap

import "fmt"

// Error returns the error with what failed before it, as "what: err"; nil for nil. fmt.Sprintf formats what
// and args.
func Error(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}
