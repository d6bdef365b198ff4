package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/attack"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
)

// attackCommand: attack NAME from HOST on HOST… [KEY=VALUE…] [as=P] for TIME. The script does
// not wait for its end. The attack is a program of the script, named NAME or P.
func attackCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	const want = "want: attack NAME from HOST on HOST… [KEY=VALUE…] for TIME"
	long, words, err := duration(args, "for", 0)
	if err != nil {
		return "", err
	}
	if long == 0 || len(words) < 5 || words[1] != "from" || words[3] != "on" {
		return "", errors.New(want)
	}
	words, pairs := options(words)
	name, set := words[0], map[string]string{}
	for _, word := range pairs {
		key, value, err := pair(word)
		if err != nil {
			return "", err
		}
		set[key] = value
	}
	if as, ok := set["as"]; ok {
		name = as
		delete(set, "as")
	}
	from, err := w.oneHost(words[2])
	if err != nil {
		return "", err
	}
	targets, err := w.hostsOf(words[4:])
	if err != nil {
		return "", err
	}
	order, err := orderOf(words[0], from, targets, long, set)
	if err != nil {
		return "", err
	}
	arguments, err := actor.Attack(order)
	if err != nil {
		return "", err
	}
	return attack.Does(words[0]), w.launch(name, from.Name(), "", func(*lab.Program) *exec.Cmd {
		return exec.Command(w.o.Actor, arguments...)
	})
}

func orderOf(name string, from *hosts.Host, targets []*hosts.Host, long time.Duration, set map[string]string) (attack.Order, error) {
	o := attack.Order{Attack: name, For: long, Options: set, Here: len(targets) == 1 && targets[0] == from}
	for _, h := range targets {
		c, err := h.Config().Resolve()
		if err != nil {
			return o, fmt.Errorf("%s: %w", h.Name(), err)
		}
		bind, err := netip.ParseAddr(c.Bind)
		if err != nil {
			return o, fmt.Errorf("%s: %w", h.Name(), err)
		}
		o.Targets = append(o.Targets, attack.Target{
			Gossip: netip.AddrPortFrom(bind, uint16(c.GossipPort)), Peer: netip.AddrPortFrom(bind, uint16(c.PeerPort)),
			HTTP: c.HTTP, Socket: c.Socket, Cluster: c.Cluster, KeyFile: c.KeyFile,
			Algorithm: c.Algorithm, Heartbeat: c.Heartbeat, Lease: c.Lease,
		})
	}
	return o, o.Check()
}
