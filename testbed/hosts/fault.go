package hosts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/netns"
)

// Fault is something that can happen to a host. The functions below return all kinds of
// faults. Scenarios, the soak, the live view and the bench use them.
type Fault struct {
	Name   string // as recordings have it
	Detail string
	Peers  []string // the hosts at the other ends of the links; nil if the fault is not one of links
	// Silences says that the agent can't report what happens to its leadership meanwhile.
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

// of turns a method of the host into a begin or an end.
func of(do func(*Host) (election.Instant, error)) func(*Cluster, *Host) (election.Instant, error) {
	return func(_ *Cluster, h *Host) (election.Instant, error) { return do(h) }
}

// with does the same as of, for a method with an argument.
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

// OtherBoot makes the host's processes believe that the kernel was started again.
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

// LimitMemory bounds the memory of the host's processes.
func LimitMemory(bytes int64) Fault {
	return Fault{Name: "memory", Detail: fmt.Sprintf("%d MB", bytes>>20), begin: with((*Host).LimitMemory, bytes), end: with((*Host).LimitMemory, 0)}
}

// Clock makes the host's clock run at a rate, from the next start on.
func Clock(rate float64) Fault {
	return Fault{Name: "clock", Detail: fmt.Sprintf("runs at %g times real time", rate), begin: with((*Host).ClockRate, rate), end: with((*Host).ClockRate, 1)}
}

// Unplug takes the host's cable out, which the host notices.
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

// Short lists names; of more than six only the first five.
func Short(names []string) string {
	if len(names) > 6 {
		return strings.Join(names[:5], " ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, " ")
}
