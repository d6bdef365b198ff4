package hosts

import (
	"errors"
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/netns"
)

// Direction is a direction between two sets of hosts.
type Direction int

const (
	BothWays Direction = iota
	Forth              // from the first set to the second
	Back               // from the second set to the first
)

func (c *Cluster) index(name string) (int, error) {
	if c.network == nil {
		return 0, unavailable("touch a link", "the hosts share the loopback interface")
	}
	i := slices.IndexFunc(c.hosts, func(h *Host) bool { return h.Name() == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no host %q", name)
	}
	return i, nil
}

func (c *Cluster) indices(names []string) (all []int, err error) {
	for _, name := range names {
		i, err := c.index(name)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

func (c *Cluster) Link(from, to string) (netns.Link, error) {
	ends, err := c.indices([]string{from, to})
	if err != nil {
		return netns.Link{}, fmt.Errorf("get link: %w", err)
	}
	return c.network.Link(ends[0], ends[1]), nil
}

// change changes the links between each host of a and each of b. If b is empty, it stands for
// all hosts that are not in a. Like all faults of links, it returns the instant just before.
func (c *Cluster) change(what string, a, b []string, d Direction, change func(*netns.Link)) (election.Instant, error) {
	from, err := c.indices(a)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	to, err := c.indices(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	for i := range c.hosts {
		if len(b) == 0 && !slices.Contains(from, i) {
			to = append(to, i)
		}
	}
	at := boottime.Now()
	set := func(i, j int) {
		before := c.network.Link(i, j)
		after := before
		if change(&after); after != before {
			err = errors.Join(err, c.network.SetLink(i, j, after))
		}
	}
	for _, i := range from {
		for _, j := range to {
			if i != j && d != Back {
				set(i, j)
			}
			if i != j && d != Forth {
				set(j, i)
			}
		}
	}
	return at, err
}

// Cut cuts links, silently. Their delays and losses stay.
func (c *Cluster) Cut(a, b []string, d Direction) (election.Instant, error) {
	return c.change("cut", a, b, d, func(l *netns.Link) { l.Cut = true })
}

// Heal ends every cut to or from the named hosts. Without names it heals the whole network and
// plugs in every cable. Delays and losses stay.
func (c *Cluster) Heal(names ...string) (election.Instant, error) {
	var all []string
	for _, h := range c.hosts {
		all = append(all, h.Name())
	}
	plug := len(names) == 0
	if plug {
		names = all
	}
	at, err := c.change("heal", names, all, BothWays, func(l *netns.Link) { l.Cut = false })
	for i := range c.hosts {
		if plug && c.network != nil {
			err = errors.Join(err, c.network.Host(i).SetCarrier(true))
		}
	}
	return at, err
}

// SetCarrier pulls a host's cable out, or plugs it in again. The host notices both.
func (c *Cluster) SetCarrier(host string, up bool) (election.Instant, error) {
	i, err := c.index(host)
	if err != nil {
		return 0, fmt.Errorf("set carrier: %w", err)
	}
	at := boottime.Now()
	return at, c.network.Host(i).SetCarrier(up)
}
