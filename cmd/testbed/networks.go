package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/netns"
)

// elsewhere ends a command whose work another process has done. That process is this
// executable, run again as root of a user namespace.
type elsewhere struct{ code int }

func (e *elsewhere) Error() string { return fmt.Sprintf("exit status %d of the same command", e.code) }

// needNetworks returns nil if this process may make networks. An *elsewhere says that another
// process, which may, has run the command. Any other error says why there are no networks.
func needNetworks() error {
	code, ran, err := netns.Rerun()
	if ran {
		return &elsewhere{code}
	}
	return err
}

// netOf chooses what joins the hosts: the loopback interface if the user asks for it or if
// there is nothing better, else namespaces.
func netOf(c *cli.Context) (hosts.Net, error) {
	if c.Bool("loopback") {
		return hosts.Loopback, nil
	}
	err := needNetworks()
	if err == nil {
		return hosts.Namespaces, nil
	}
	if ran, ok := errors.AsType[*elsewhere](err); ok {
		return hosts.Loopback, ran
	}
	fmt.Fprintf(c.App.ErrWriter, "the hosts share the loopback interface: links can't be cut, delayed or made lossy, nor disks filled\n(%v)\n", err)
	return hosts.Loopback, nil
}

func seedOf(c *cli.Context) uint64 {
	if c.IsSet("seed") {
		return c.Uint64("seed")
	}
	return rand.Uint64()
}
