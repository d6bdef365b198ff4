package soak

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/testbed/netns"
)

// Kind is a kind of fault.
type Kind string

const (
	Crash         Kind = "crash"          // kill -9 of an agent, and a start later
	Terminate     Kind = "terminate"      // SIGTERM, and a start later
	Freeze        Kind = "freeze"         // SIGSTOP of an agent, SIGCONT later
	FreezeHost    Kind = "freeze host"    // of the agent and its program
	CrashHost     Kind = "crash host"     // kill -9 of both
	CrashProgram  Kind = "crash program"  // kill -9
	FreezeProgram Kind = "freeze program" // SIGSTOP
	Resign        Kind = "resign"         // the leader is asked to resign
	Drain         Kind = "drain"          // on, and off later
	Cut           Kind = "cut"            // from all others, silently
	CutOut        Kind = "cut out"        // no other hears the host
	CutIn         Kind = "cut in"         // the host hears no other
	CutPair       Kind = "cut pair"       // two hosts from each other
	BadLinks      Kind = "bad links"      // delay, loss, duplication, reordering of all that the host sends
	Unplug        Kind = "unplug"         // the host loses its carrier, and notices
	SlowDisk      Kind = "slow disk"
	Starve        Kind = "starve" // of processor time
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Crash, Terminate, Freeze, FreezeHost, CrashHost, CrashProgram, FreezeProgram, Resign, Drain,
		Cut, CutOut, CutIn, CutPair, BadLinks, Unplug, SlowDisk, Starve}
}

// leading stands for the host that leads when the fault strikes.
const leading = -1

// strike is one fault of a round.
type strike struct {
	Kind  Kind
	Host  int // its index, or leading
	Other int // the second host of CutPair
	At    time.Duration
	Lasts time.Duration
	Link  netns.Link    // for BadLinks
	Disk  time.Duration // for SlowDisk: how much longer each write takes
}

func (s strike) String() string {
	host := "the leader"
	if s.Host != leading {
		host = fmt.Sprintf("host %d", s.Host)
	}
	return fmt.Sprintf("%s of %s after %s for %s", s.Kind, host, s.At.Round(time.Millisecond), s.Lasts.Round(time.Millisecond))
}

// drawRound draws the faults of one round, in the order of their beginnings: most often one,
// sometimes two or three. All are over a few leases after the round began.
func drawRound(rng *rand.Rand, kinds []Kind, hosts int, lease time.Duration) []strike {
	n := []int{1, 1, 1, 2, 2, 3}[rng.IntN(6)]
	var all []strike
	for range n {
		s := strike{
			Kind: kinds[rng.IntN(len(kinds))], Host: leading, Other: rng.IntN(hosts),
			At:    time.Duration(rng.Int64N(int64(lease))),
			Lasts: around(rng, []time.Duration{lease / 6, lease, 2 * lease}[rng.IntN(3)], 5*lease),
			Link: netns.Link{Delay: around(rng, lease/60, lease/4), Jitter: around(rng, lease/120, lease/4),
				Loss: rng.Float64() * 0.3, Duplicate: rng.Float64() * 0.1, Reorder: rng.Float64() * 0.1},
			Disk: around(rng, lease/20, lease),
		}
		if rng.IntN(2) == 0 {
			s.Host = rng.IntN(hosts)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b strike) int { return cmp.Compare(a.At, b.At) })
	return all
}

// around draws an exponentially distributed time with that mean, at most the given one.
func around(rng *rand.Rand, mean, most time.Duration) time.Duration {
	return min(time.Duration(rng.ExpFloat64()*float64(mean)), most)
}

// moment is when a fault of a round begins or, with undo, ends.
type moment struct {
	at     time.Duration
	strike int
	undo   bool
}

// moments puts the beginnings and ends of a round's faults in order.
func moments(all []strike) []moment {
	var line []moment
	for i, s := range all {
		line = append(line, moment{s.At, i, false}, moment{s.At + s.Lasts, i, true})
	}
	slices.SortStableFunc(line, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return line
}
