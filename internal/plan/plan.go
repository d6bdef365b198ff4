package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

const (
	mostRuns  = 32
	leastRuns = 2
	// budget bounds the steps of all runs together. A step counts once, and once more for each election in the
	// run. The first leastRuns runs are always made.
	budget = 1_000_000
)

// Report answers what would happen. Its JSON is what `doyen plan` writes.
type Report struct {
	Down      []string   `json:"down"`
	Sides     []Side     `json:"sides"`
	Elections []Forecast `json:"elections"`
	Runs      int        `json:"runs"` // how many runs were made, each with other delays
	// Settled is true if, at the end of every run, nothing changed any more.
	Settled bool `json:"settled"`
}

// Side is a group of agents that reach each other, but no other agent.
type Side struct {
	Agents    []string `json:"agents"`
	Voters    int      `json:"voters"` // voters in the whole roster; Reachable counts those on this side
	Reachable int      `json:"voters_reachable"`
	Needed    int      `json:"voters_needed"`
	Quorum    bool     `json:"quorum"` // always true if elections need no quorum
}

// Forecast is one election, now and after the faults.
type Forecast struct {
	Election string  `json:"election"`
	Leader   string  `json:"leader"` // the leader now; empty: nobody
	Term     uint64  `json:"term"`
	Then     []Reign `json:"then"` // who would lead; with a quorum, at most one entry
	// Leaderless names the agents that would not know a leader.
	Leaderless []string `json:"leaderless"`
}

// Reign is the leadership of an election on one side.
type Reign struct {
	Side    int      `json:"side"`    // an index of Report.Sides
	Leaders []string `json:"leaders"` // several if the leader depends on delays; the most likely first
	Term    uint64   `json:"term"`    // the lowest in all runs
	Stays   bool     `json:"stays"`   // the present leader leads on in the present term
	// EarliestMS and LatestMS bound the time from the faults until the leader leads, over all runs.
	EarliestMS int64 `json:"earliest_ms"`
	LatestMS   int64 `json:"latest_ms"`
	// Certain is true if every run ended with a leader.
	Certain bool `json:"certain"`
}

// Ask answers what would happen. The first run uses seed, and each later run the next number. If the question
// is not valid, the error is an *InputError.
func Ask(s Snapshot, f Faults, seed uint64) (Report, error) {
	if err := s.validate(); err != nil {
		return Report{}, err
	}
	groups, err := s.lay(f)
	if err != nil {
		return Report{}, err
	}
	var runs []outcome
	alike := s.alike(f)
	few := s
	few.Elections = alike.first
	for work := 0; len(runs) < mostRuns && (len(runs) < leastRuns || work < budget); {
		o, err := play(few, f, groups, seed+uint64(len(runs)))
		if err != nil {
			return Report{}, err
		}
		runs = append(runs, o)
		work += o.steps * (1 + len(few.Elections))
	}
	return s.report(groups, alike, runs), nil
}

// report combines the outcomes of the runs.
func (s Snapshot) report(groups map[election.PeerID]int, alike classes, runs []outcome) Report {
	r := Report{Down: []string{}, Sides: []Side{}, Elections: []Forecast{}, Runs: len(runs), Settled: true}
	for _, o := range runs {
		r.Settled = r.Settled && o.settled
	}
	sides := s.sides(groups)
	for _, a := range s.Agents {
		if groups[a.Peer] < 0 {
			r.Down = append(r.Down, a.Name)
		}
	}
	for _, g := range sides {
		r.Sides = append(r.Sides, s.side(groups, g))
	}
	for _, e := range s.Elections {
		forecast := Forecast{Election: string(e.Name), Leader: s.name(e.Leader), Term: uint64(e.Term), Then: []Reign{}, Leaderless: []string{}}
		for i, g := range sides {
			reign, led := s.reign(e, alike.of[e.Name], g, runs)
			reign.Side = i
			if led {
				forecast.Then = append(forecast.Then, reign)
			}
			if !led || !reign.Certain {
				forecast.Leaderless = append(forecast.Leaderless, r.Sides[i].Agents...)
			}
		}
		r.Elections = append(r.Elections, forecast)
	}
	slices.SortFunc(r.Elections, func(a, b Forecast) int { return strings.Compare(a.Election, b.Election) })
	return r
}

// sides returns the groups in which at least one agent is up, the largest first.
func (s Snapshot) sides(groups map[election.PeerID]int) []int {
	count := map[int]int{}
	var sides []int
	for _, a := range s.Agents {
		if g := groups[a.Peer]; g >= 0 {
			if count[g]++; count[g] == 1 {
				sides = append(sides, g)
			}
		}
	}
	slices.SortFunc(sides, func(a, b int) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return sides
}

func (s Snapshot) side(groups map[election.PeerID]int, g int) Side {
	side := Side{Quorum: true}
	here := func(p election.PeerID) bool { at, up := groups[p]; return up && at == g }
	for _, a := range s.Agents {
		if here(a.Peer) {
			side.Agents = append(side.Agents, a.Name)
		}
	}
	slices.Sort(side.Agents)
	if s.Quorum {
		for _, v := range s.Roster.Voters {
			if here(v.Peer) {
				side.Reachable++
			}
		}
		side.Voters = len(s.Roster.Voters)
		side.Needed, side.Quorum = quorum.Majority(len(s.Roster.Voters)), quorum.Confirmed(s.Roster, here)
	}
	return side
}

// classes groups elections with the same leader and the same ranking of candidates. All elections of a class
// have the same outcome, so only one of them is run.
type classes struct {
	first []Election                 // one election of each class
	of    map[election.Name]Election // for each election, the one that is run in its place
}

func (s Snapshot) alike(faults Faults) classes {
	c := classes{of: map[election.Name]Election{}}
	first := map[string]Election{}
	for _, e := range s.Elections {
		transferred := faults.To != "" && faults.Election == e.Name
		class := fmt.Sprint(e.Leader, e.Term == 0, transferred, e.Candidates, s.ranked(e))
		if _, known := first[class]; !known {
			first[class] = e
			c.first = append(c.first, e)
		}
		c.of[e.Name] = first[class]
	}
	return c
}

// reign combines, over all runs, which agents lead election e on one side, and reports whether any agent does.
// `as`, the first election of e's class, was run in place of e.
func (s Snapshot) reign(e, as Election, g int, runs []outcome) (Reign, bool) {
	r := Reign{Certain: true, Stays: true}
	wins := map[string]int{}
	for _, o := range runs {
		v, ok := o.sides[g][as.Name]
		if !ok {
			r.Certain = false
			continue
		}
		v.term += e.Term - as.Term
		after := v.after.Round(time.Millisecond).Milliseconds()
		if len(wins) == 0 {
			r.Term, r.EarliestMS = uint64(v.term), after
		}
		wins[s.name(v.leader)]++
		r.Term, r.EarliestMS, r.LatestMS = min(r.Term, uint64(v.term)), min(r.EarliestMS, after), max(r.LatestMS, after)
		r.Stays = r.Stays && v.leader == e.Leader && v.term == e.Term
	}
	r.Leaders = slices.SortedFunc(maps.Keys(wins), func(a, b string) int { return cmp.Or(cmp.Compare(wins[b], wins[a]), strings.Compare(a, b)) })
	return r, len(wins) > 0
}

func (s Snapshot) name(p election.PeerID) string {
	a, _ := s.agent(p)
	return cmp.Or(a.Name, string(p)) // an agent that is not alive has no name; an empty p means nobody
}
