package hosts

import (
	"errors"
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/netns"
)

// Direction says which way between two sets of hosts is meant.
type Direction int

const (
	BothWays Direction = iota
	Forth              // from the first to the second
	Back               // from the second to the first
)

// index finds a host of the network.
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

// indices finds hosts of the network.
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

// SetLink sets what happens to packets from one host to another, from now on.
// Like the faults of hosts, those of links return the instant just before.
func (c *Cluster) SetLink(from, to string, l netns.Link) (election.Instant, error) {
	ends, err := c.indices([]string{from, to})
	if err != nil {
		return 0, fmt.Errorf("set link: %w", err)
	}
	at := boottime.Now()
	return at, c.network.SetLink(ends[0], ends[1], l)
}

// Link returns what happens to packets from one host to another.
func (c *Cluster) Link(from, to string) (netns.Link, error) {
	ends, err := c.indices([]string{from, to})
	if err != nil {
		return netns.Link{}, fmt.Errorf("get link: %w", err)
	}
	return c.network.Link(ends[0], ends[1]), nil
}

// Cut cuts the links between each host of a and each of b (all that are not in
// a, if b is empty), silently. What else the links do stays as it is.
func (c *Cluster) Cut(a, b []string, d Direction) (election.Instant, error) {
	from, err := c.indices(a)
	if err != nil {
		return 0, fmt.Errorf("cut: %w", err)
	}
	to, err := c.indices(b)
	if err != nil {
		return 0, fmt.Errorf("cut: %w", err)
	}
	if len(b) == 0 {
		for i := range c.hosts {
			if !slices.Contains(from, i) {
				to = append(to, i)
			}
		}
	}
	at := boottime.Now()
	for _, i := range from {
		for _, j := range to {
			if i != j {
				err = errors.Join(err, c.cut(i, j, d))
			}
		}
	}
	return at, err
}

func (c *Cluster) cut(i, j int, d Direction) (err error) {
	if d != Back {
		err = c.set(i, j, true)
	}
	if d != Forth {
		err = errors.Join(err, c.set(j, i, true))
	}
	return err
}

func (c *Cluster) set(from, to int, cut bool) error {
	l := c.network.Link(from, to)
	l.Cut = cut
	return c.network.SetLink(from, to, l)
}

// Heal ends every cut to or from the hosts. Without a name it heals the whole
// network, and plugs every cable in. Delays and losses stay: SetLink ends those.
func (c *Cluster) Heal(names ...string) (election.Instant, error) {
	if c.network == nil {
		return 0, unavailable("heal the links", "the hosts share the loopback interface")
	}
	healed, err := c.indices(names)
	if err != nil {
		return 0, fmt.Errorf("heal: %w", err)
	}
	at := boottime.Now()
	var errs []error
	for i := range c.hosts {
		if len(names) == 0 {
			errs = append(errs, c.network.Host(i).SetCarrier(true))
		}
		for j := range c.hosts {
			meant := len(names) == 0 || slices.Contains(healed, i) || slices.Contains(healed, j)
			if meant && i != j && c.network.Link(i, j).Cut {
				errs = append(errs, c.set(i, j, false))
			}
		}
	}
	return at, errors.Join(errs...)
}

// SetCarrier pulls a host's cable out, which the host notices, or plugs it in
// again.
func (c *Cluster) SetCarrier(host string, up bool) (election.Instant, error) {
	i, err := c.index(host)
	if err != nil {
		return 0, fmt.Errorf("set carrier: %w", err)
	}
	at := boottime.Now()
	return at, c.network.Host(i).SetCarrier(up)
}
