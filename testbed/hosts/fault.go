package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
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

	begin, end effect
}

// effect begins or ends a fault. It returns the instant just before it acts.
type effect func(*Cluster, *Host) (election.Instant, error)

func (f Fault) Begin(c *Cluster, h *Host) (election.Instant, error) { return f.begin(c, h) }

func (f Fault) End(c *Cluster, h *Host) (election.Instant, error) {
	if f.end == nil {
		return 0, fmt.Errorf("end %s of %s: it has no end", f.Name, h.Name())
	}
	return f.end(c, h)
}

// of makes an effect of a method that returns the instant itself.
func of(do func(*Host) (election.Instant, error)) effect {
	return func(_ *Cluster, h *Host) (election.Instant, error) { return do(h) }
}

func on(what string, do func(*Cluster, *Host) error) effect {
	return func(c *Cluster, h *Host) (election.Instant, error) {
		at := boottime.Now()
		return at, wrap.Error(do(c, h), "%s of %s", what, h.Name())
	}
}

// inside is like on, for what is done on a thread in the host's sandbox.
func inside(what string, do func(*Host) error) effect {
	return on(what, func(_ *Cluster, h *Host) error {
		if !h.sandbox.disk || h.sandbox.space == nil {
			return unavailable(what, "it needs a cluster in namespaces, with DiskFaults")
		}
		return h.inSandbox(func() error { return do(h) })
	})
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

// Install copies a program file to Program. The agent's next start runs this copy.
func Install(b Binary, version string) Fault {
	return Fault{Name: "install", Detail: version, begin: on("change the program", func(_ *Cluster, h *Host) error { return h.install(b) })}
}

// LoseProgram removes the installed program file, so that nothing can be started from it.
func LoseProgram() Fault {
	return Fault{Name: "lose-program", begin: on("remove the program", func(_ *Cluster, h *Host) error {
		return wrap.Error(os.Remove(h.Program()), "install one first")
	})}
}

// OtherBoot shows the host's processes another boot ID of the kernel from now on. It needs a
// cluster in Namespaces, with DiskFaults.
func OtherBoot() Fault {
	return Fault{Name: "other-boot", begin: inside("change the boot", func(h *Host) error { return h.sandbox.otherBoot(filepath.Join(h.dir, "boot_id")) })}
}

// Wipe empties the data directory of a host that is down. From the next start on, the host's agent
// has another peer ID. If the host is not down, it fails with ErrUp.
func Wipe() Fault {
	return Fault{Name: "wipe", begin: on("wipe the disk", func(_ *Cluster, h *Host) error { return h.wipe() })}
}

// FullDisk leaves no byte free on the host's disk. It needs a cluster in Namespaces, with DiskFaults.
func FullDisk() Fault {
	return Fault{Name: "disk", Detail: "full", begin: inside("fill the disk", func(h *Host) error { return h.sandbox.fill() }),
		end: inside("free the disk", func(h *Host) error { return h.sandbox.free() })}
}

// SlowDisk makes each fsync and fdatasync of the host's processes take longer by d, even those that have
// begun. With Stuck, they wait until the fault ends. It needs a cluster with DiskFaults.
func SlowDisk(d time.Duration) Fault {
	wait := d.String()
	if d == Stuck {
		wait = "stuck"
	}
	slow := func(d time.Duration) effect {
		return on("slow the disk", func(_ *Cluster, h *Host) error { return h.sandbox.slow(d) })
	}
	return Fault{Name: "disk", Detail: "each write waits: " + wait, begin: slow(d), end: slow(0)}
}

// Crowd gives the host's processes, except its keeper, the lowest priority, for good, beside n busy
// processes that compete with them for the processor. Its end ends the busy processes.
func Crowd(n int) Fault {
	crowd := func(n int) effect {
		return on("crowd the processor", func(_ *Cluster, h *Host) error { return h.crowd(n) })
	}
	return Fault{Name: "crowd", Detail: fmt.Sprintf("lowest priority beside %d busy processes", n), begin: crowd(n), end: crowd(0)}
}

// Starve leaves the host's processes a tenth of a processor: it stops them for nine tenths of the time.
func Starve() Fault {
	starve := func(yes bool) effect {
		return on("starve", func(_ *Cluster, h *Host) error { h.starve(yes); return nil })
	}
	return Fault{Name: "cpu", Detail: "a tenth of a processor", begin: starve(true), end: starve(false)}
}

// Clock makes CLOCK_BOOTTIME and CLOCK_MONOTONIC, as system calls read them, run at the rate,
// without a step, for processes that start on the host from now on; 1 is true time. All else keeps
// true time, also timers. So an agent with a fast clock believes that its timers wake it late. Each
// reading costs some 20 µs. Host.Real translates stamps.
func Clock(rate float64) Fault {
	runs := func(rate float64) effect {
		return onClock(func(h *Host) error {
			if !(rate >= minRate && rate <= maxRate) {
				return fmt.Errorf("rate %v: want %v to %v", rate, minRate, maxRate)
			}
			h.rate = rate
			return nil
		})
	}
	return Fault{Name: "clock", Detail: fmt.Sprintf("runs at %g times real time", rate), begin: runs(rate), end: runs(1)}
}

// WallClock puts the wall clock (CLOCK_REALTIME) ahead, for processes that start on the host from now on.
func WallClock(ahead time.Duration) Fault {
	set := func(ahead time.Duration) effect { return onClock(func(h *Host) error { h.wall = ahead; return nil }) }
	return Fault{Name: "wall-clock", Detail: ahead.String() + " ahead", begin: set(ahead), end: set(0)}
}

func onClock(set func(*Host) error) effect {
	return on("set the clock", func(_ *Cluster, h *Host) error {
		if err := canIntercept(); err != nil {
			return unavailable("change it", err.Error())
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return set(h)
	})
}

// Unplug takes the host's cable out. The host notices, as it notices the end.
func Unplug() Fault {
	carrier := func(up bool) effect {
		return on("set the carrier", func(c *Cluster, h *Host) error {
			i, err := c.index(h.Name())
			if err != nil {
				return err
			}
			return c.network.Host(i).SetCarrier(up)
		})
	}
	return Fault{Name: "carrier", Detail: "its cable is unplugged", begin: carrier(false), end: carrier(true)}
}

// Cut silently loses all packets between the host and the peers; no peers means all other hosts. The links
// keep their delays and losses. The end of the fault heals every cut of the host.
func Cut(peers []string, d Direction) Fault {
	detail := map[Direction]string{BothWays: "from ", Forth: "one way, to ", Back: "one way, from "}[d] + Short(peers)
	return Fault{Name: "cut", Detail: detail, Peers: slices.Clip(peers),
		begin: on("cut", func(c *Cluster, h *Host) error { return c.change(h, peers, d, func(l *netns.Link) { l.Cut = true }) }),
		end:   on("heal", func(c *Cluster, h *Host) error { return c.heal(h) })}
}

// Degrade sets what the links between the host and the peers do to packets. A cut
// link stays cut.
func Degrade(peers []string, d Direction, l netns.Link, detail string) Fault {
	set := func(l netns.Link) effect {
		return on("set a link", func(c *Cluster, h *Host) error {
			return c.change(h, peers, d, func(old *netns.Link) {
				cut := old.Cut
				*old = l
				old.Cut = cut
			})
		})
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

// change changes the links between a host and its peers. No peers means all other hosts.
func (c *Cluster) change(h *Host, peers []string, d Direction, change func(*netns.Link)) error {
	i, err := c.index(h.Name())
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		peers = each.Of(c.hosts, (*Host).Name)
	}
	set := func(from, to int) {
		before := c.network.Link(from, to)
		after := before
		if change(&after); after != before {
			err = errors.Join(err, c.network.SetLink(from, to, after))
		}
	}
	for _, peer := range peers {
		j, unknown := c.index(peer)
		if unknown != nil {
			return unknown
		}
		if i != j && d != Back {
			set(i, j)
		}
		if i != j && d != Forth {
			set(j, i)
		}
	}
	return err
}

// heal ends every cut to or from the host.
func (c *Cluster) heal(h *Host) error {
	return c.change(h, nil, BothWays, func(l *netns.Link) { l.Cut = false })
}

// Heal ends all cuts, and plugs in every cable. Delays and losses stay.
func (c *Cluster) Heal() error {
	var errs []error
	for _, h := range c.hosts {
		_, err := Unplug().End(c, h)
		errs = append(errs, err, c.heal(h))
	}
	return errors.Join(errs...)
}
