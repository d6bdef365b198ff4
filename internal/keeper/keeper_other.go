//go:build !linux

package keeper

import "errors"

// Available reports whether this system has what a keeper needs.
const Available = false

// Become never returns without an error: only Linux has what a keeper needs.
func Become(string, []string, string, string) error {
	return errors.New("only Linux has what a keeper needs")
}

// Attach returns nil: there is no keeper.
func Attach() *Life { return nil }

// Apart tells a program nothing here.
const Apart = "DOYEN_KEEPER_PAGE=-1"
