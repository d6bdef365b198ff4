// Package attack does to agents what people who mean harm can do. Each attack is a small
// function in its own file. A table lists the attacks, each with a sentence. Scripts of
// testbed/scenario start attacks on hosts ("attack NAME from HOST on HOST"); docs/testbed.md
// lists them.
//
// An attack ends with its context, sends only to the targets it is given, and says at the end
// what it sent. It does not judge what became of the targets: the script does. To add an
// attack, add a function and a line of the table.
package attack

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/testbed/observe"
)

// Target is an agent that is attacked. An attacker can find out the fields from the network, except
// Socket, which is for attackers on the agent's host, and KeyFile, which is for those with the key.
type Target struct {
	Gossip  netip.AddrPort
	Peer    netip.AddrPort
	HTTP    string // HOST:PORT of the HTTP listener; empty if it has none
	Socket  string // path of the socket, for attacks from its own host
	Cluster string
	KeyFile string
	// What the agents must agree on: an attacker needs it to join them.
	Algorithm string
	Heartbeat time.Duration
	Lease     time.Duration
}

type Order struct {
	Attack  string
	Targets []Target
	Here    bool // the attack runs on the host of its target
	For     time.Duration
	Options map[string]string
}

// runner carries out an order, and returns what it did.
type runner func(context.Context, Order) (did string, err error)

type attack struct {
	does string                     // what it does, in a sentence
	run  func(*flag.FlagSet) runner // adds the attack's options, with their defaults; they are set before the runner runs
}

func attacks() map[string]attack {
	return map[string]attack{
		"streams":   {"opens streams on the gossip port that announce much, and sends much on each, without the key", streams},
		"idle":      {"opens connections, sends nothing or the beginning of something, and keeps them", idle},
		"noise":     {"sends datagrams that no agent made, from many addresses, to the gossip port", noise},
		"version0":  {"has the key, and sends a packet of encryption version 0 whose padding is a lie", version0},
		"observer":  {"has the key, joins as an agent that is not a voter, and sends what no agent would", observer},
		"strangers": {"has the key in use, and joins under a new name and identity again and again, to be sent the next key", strangers},
		"replay":    {"listens to the gossip of the host it is on, and sends all of it again, without the key", replay},
	}
}

func Names() []string { return slices.Sorted(maps.Keys(attacks())) }

func Does(name string) string { return attacks()[name].does }

// Check returns an error if the order can't be carried out: its attack or an option is
// unknown, a value can't be read, or it has no target.
func (o Order) Check() error {
	_, err := o.runner()
	return err
}

func (o Order) runner() (runner, error) {
	a, ok := attacks()[o.Attack]
	if !ok {
		return nil, fmt.Errorf("unknown attack %q; known are %s", o.Attack, strings.Join(Names(), ", "))
	}
	if len(o.Targets) == 0 {
		return nil, errors.New("no host is attacked")
	}
	options, known := flag.NewFlagSet(o.Attack, flag.ContinueOnError), []string{}
	run := a.run(options)
	options.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	for key, value := range o.Options {
		if err := options.Set(key, value); err != nil {
			return nil, fmt.Errorf("attack %s, %s=%s: %w; its options are %s", o.Attack, key, value, err, strings.Join(known, ", "))
		}
	}
	return run, nil
}

// Run carries out an order in JSON until its time is over or ctx ends. It returns what the
// attack did.
func Run(ctx context.Context, text string) (string, error) {
	var o Order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return "", fmt.Errorf("decode the order: %w", err)
	}
	run, err := o.runner()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	return run(ctx, o)
}

// key reads the first cluster key in the target's key file.
func (t Target) key() ([]byte, error) {
	keys, err := settings.ReadKeys(t.KeyFile)
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}

// label is how each packet and stream of a cluster begins, in plain text.
func (t Target) label() []byte {
	return append([]byte{244, byte(len(t.Cluster))}, t.Cluster...)
}

// newPace lets a number of actions through each second, and catches up after a delay. If the number is 0, no action waits.
func newPace(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	pace := rate.NewLimiter(rate.Limit(perSecond), 1+int(perSecond))
	pace.AllowN(time.Now(), pace.Burst()) // it does not begin with a second's worth at once
	return pace
}

// sendGossip sends a number of packets a second to the targets in turn, from the sockets in turn. The
// function packet makes each packet for its target. sendGossip returns how many packets it sent;
// a full queue or a target that is down may have lost some of them.
func (o Order) sendGossip(ctx context.Context, perSecond float64, packet func(Target) ([]byte, error), from ...net.PacketConn) (sent int, err error) {
	for p := newPace(perSecond); observe.Sleep(ctx, p.Reserve().Delay()) == nil; sent++ {
		t := o.Targets[sent%len(o.Targets)]
		b, err := packet(t)
		if err != nil {
			return sent, err
		}
		_, _ = from[sent%len(from)].WriteTo(b, net.UDPAddrFromAddrPort(t.Gossip))
	}
	return sent, nil
}
