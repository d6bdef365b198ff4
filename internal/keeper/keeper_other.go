//go:build !linux

package keeper

import (
	"context"
	"errors"
)

// Available is false: only Linux has what a keeper needs.
const Available = false

// Become always returns an error, since only Linux has what a keeper needs.
func Become(Given) error { return errors.New("only Linux has what a keeper needs") }

// Attach returns nil, since there is no keeper.
func Attach() *Life { return nil }

// Private does nothing here.
func Private() {}

// Confine does nothing here.
func (*Life) Confine() error { return nil }

// Try is never called on this system.
func (*Life) Try(context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }
