//go:build !linux

package keeper

import (
	"context"
	"errors"
)

// Available reports whether this system has what a keeper needs.
const Available = false

// Become never returns without an error: only Linux has what a keeper needs.
func Become(Given) error {
	return errors.New("only Linux has what a keeper needs")
}

// Attach returns nil: there is no keeper.
func Attach() *Life { return nil }

// Confine does nothing here.
func (*Life) Confine() error { return nil }

// Try is never called here.
func (*Life) Try(context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }
