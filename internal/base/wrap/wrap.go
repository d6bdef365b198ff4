// Package wrap adds context to an error. nil stays nil, so callers need no check.
package wrap

import "fmt"

// Error returns "what: err" as an error; nil for nil. fmt.Sprintf formats what and args.
func Error(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}
