package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/netns"
)

// Fault is something that can happen to a host. The functions below return all kinds of
// faults. Scenarios, the soak, the live view and the bench use them.
type Fault struct {
	Name   string // the name in recordings
	Detail string
	Peers  []string // the hosts at the other ends of the links; nil if the fault is not one of links
	// Silences is whether the fault keeps the agent from reporting on its leadership.
	Silences bool

	begin, end func(*Cluster, *Host) (election.Instant, error)
}

// Begin lets the fault happen to the host. Begin and End return the instant just before they
// act.
func (f Fault) Begin(c *Cluster, h *Host) (election.Instant, error) { return f.begin(c, h) }

func (f Fault) End(c *Cluster, h *Host) (election.Instant, error) {
	if f.end == nil {
		return 0, fmt.Errorf("end %s of %s: it has no end", f.Name, h.Name())
	}
	return f.end(c, h)
}

// of makes a begin or an end from a method of the host.
func of(do func(*Host) (election.Instant, error)) func(*Cluster, *Host) (election.Instant, error) {
	return func(_ *Cluster, h *Host) (election.Instant, error) { return do(h) }
}

// with is like of, for a method with an argument.
func with[T any](do func(*Host, T) (election.Instant, error), x T) func(*Cluster, *Host) (election.Instant, error) {
	return func(_ *Cluster, h *Host) (election.Instant, error) { return do(h, x) }
}

// Crash ends the agent at once (SIGKILL). The fault ends with the agent's next start.
func Crash() Fault {
	return Fault{Name: "crash", Silences: true, begin: of((*Host).Kill), end: of((*Host).Start)}
}

// Terminate asks the agent to end (SIGTERM). The fault ends with the agent's next start.
func Terminate() Fault {
	return Fault{Name: "terminate", begin: of((*Host).Terminate), end: of((*Host).Start)}
}

// Freeze stops the agent without its knowledge (SIGSTOP).
func Freeze() Fault {
	return Fault{Name: "freeze", Silences: true, begin: of((*Host).Freeze), end: of((*Host).Thaw)}
}

// Install replaces the host's program file, from its agent's next start on.
func Install(b Binary, version string) Fault {
	return Fault{Name: "install", Detail: version, begin: with((*Host).Install, b)}
}

// LoseProgram removes the host's program file.
func LoseProgram() Fault {
	return Fault{Name: "lose-program", begin: of((*Host).LoseProgram)}
}

// OtherBoot makes the host's processes believe that the kernel has been restarted.
func OtherBoot() Fault { return Fault{Name: "other-boot", begin: of((*Host).OtherBoot)} }

func Wipe() Fault { return Fault{Name: "wipe", begin: of((*Host).Wipe)} }

func FullDisk() Fault {
	return Fault{Name: "disk", Detail: "full", begin: of((*Host).FillDisk), end: of((*Host).FreeDisk)}
}

// SlowDisk makes each fsync take longer by d. With Stuck, no fsync ends.
func SlowDisk(d time.Duration) Fault {
	wait := d.String()
	if d == Stuck {
		wait = "stuck"
	}
	return Fault{Name: "disk", Detail: "each write waits: " + wait, begin: with((*Host).SlowDisk, d), end: with((*Host).SlowDisk, 0)}
}

// Crowd gives the host's processes the lowest priority, beside n busy processes.
func Crowd(n int) Fault {
	return Fault{Name: "crowd", Detail: fmt.Sprintf("lowest priority beside %d busy processes", n), begin: with((*Host).Crowd, n), end: with((*Host).Crowd, 0)}
}

// Starve leaves the host a tenth of a processor.
func Starve() Fault {
	return Fault{Name: "cpu", Detail: "a tenth of a processor", begin: with((*Host).Starve, true), end: with((*Host).Starve, false)}
}

// Clock makes the host's clock run at a rate, from the next start on.
func Clock(rate float64) Fault {
	return Fault{Name: "clock", Detail: fmt.Sprintf("runs at %g times real time", rate), begin: with((*Host).ClockRate, rate), end: with((*Host).ClockRate, 1)}
}

// WallClock puts the host's wall clock ahead, from the next start of a process on.
func WallClock(ahead time.Duration) Fault {
	return Fault{Name: "wall-clock", Detail: ahead.String() + " ahead", begin: with((*Host).WallClock, ahead), end: with((*Host).WallClock, 0)}
}

// Unplug takes the host's cable out. The host notices.
func Unplug() Fault {
	carrier := func(up bool) func(*Cluster, *Host) (election.Instant, error) {
		return func(c *Cluster, h *Host) (election.Instant, error) { return c.SetCarrier(h.Name(), up) }
	}
	return Fault{Name: "carrier", Detail: "its cable is unplugged", begin: carrier(false), end: carrier(true)}
}

// Cut silently loses all packets between the host and the peers. The end of the fault heals
// every cut of the host.
func Cut(peers []string, d Direction) Fault {
	detail := map[Direction]string{BothWays: "from ", Forth: "one way, to ", Back: "one way, from "}[d] + Short(peers)
	return Fault{Name: "cut", Detail: detail, Peers: slices.Clip(peers),
		begin: func(c *Cluster, h *Host) (election.Instant, error) { return c.Cut([]string{h.Name()}, peers, d) },
		end:   func(c *Cluster, h *Host) (election.Instant, error) { return c.Heal(h.Name()) }}
}

// Degrade sets what the links between the host and the peers do to packets. A cut
// link stays cut.
func Degrade(peers []string, d Direction, l netns.Link, detail string) Fault {
	set := func(l netns.Link) func(*Cluster, *Host) (election.Instant, error) {
		return func(c *Cluster, h *Host) (election.Instant, error) {
			return c.change("set link", []string{h.Name()}, peers, d, func(old *netns.Link) {
				cut := old.Cut
				*old = l
				old.Cut = cut
			})
		}
	}
	return Fault{Name: "link", Detail: detail, Peers: slices.Clip(peers), begin: set(l), end: set(netns.Link{})}
}

// Short lists names. Of more than six names it lists only the first five, and how many are left.
func Short(names []string) string {
	if len(names) > 6 {
		return strings.Join(names[:5], " ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, " ")
}

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

// change changes the links between each host of a and each host of b. If b is empty, b means all hosts
// that are not in a. change returns the instant just before the change, as Cut and Heal do.
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

// Cut silently cuts the links between the hosts of a and of b. The links keep their delays and losses.
func (c *Cluster) Cut(a, b []string, d Direction) (election.Instant, error) {
	return c.change("cut", a, b, d, func(l *netns.Link) { l.Cut = true })
}

// Heal ends every cut to or from the named hosts. Without names it heals the whole network and
// plugs in every cable. Delays and losses stay.
func (c *Cluster) Heal(names ...string) (election.Instant, error) {
	all := each.Of(c.hosts, (*Host).Name)
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
