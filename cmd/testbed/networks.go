package main

import (
	"fmt"

	"github.com/doyen-election/doyen/testbed/netns"
)

// elsewhere ends a command whose work another process has done: this executable
// again, as root of a user namespace.
type elsewhere struct{ code int }

func (e *elsewhere) Error() string { return fmt.Sprintf("exit status %d of the same command", e.code) }

// needNetworks gets a command the right to make networks. If the command ran
// elsewhere for that, the error is of that type; any other says why there can be
// none.
func needNetworks() error {
	code, ran, err := netns.Rerun()
	if ran {
		return &elsewhere{code}
	}
	return err
}
