package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// Snapshot is the live state, as one agent reports it.
type Snapshot struct {
	Algorithm    string
	Timing       election.Timing
	Quorum       bool
	Preempt      bool
	PreemptDelay time.Duration
	Roster       *election.Roster // needed if Quorum is true
	Agents       []Agent          // all live agents
	Elections    []Election
}

// Agent is a live agent.
type Agent struct {
	Name     string
	Peer     election.PeerID
	JoinedAt int64 // Unix nanoseconds
	// Priority is the agent's priority in the election default, if it is a candidate there.
	Priority int
	// RTT is the round trip between this agent and the one that made the snapshot; 0: unknown.
	RTT time.Duration
}

// Election is one election at the moment of the snapshot.
type Election struct {
	Name       election.Name
	Leader     election.PeerID // empty: nobody leads
	Term       election.Term   // the leader's term, or the last known one
	Candidates []election.PeerID
}

// Faults are the events that the plan is about.
type Faults struct {
	// Down names agents whose hosts go down.
	Down []string
	// Groups are names of agents, by group. After the faults, an agent reaches only agents of its own group. All
	// agents in no group form one more.
	Groups [][]string
	// Stopped names agents that hand over everything they lead, and then stop.
	Stopped []string
	// To names the agent to which the leader of Election hands over; empty: no such transfer.
	To       string
	Election election.Name
}

// InputError reports what is wrong with a question.
type InputError struct{ Problem, Hint string }

func (e *InputError) Error() string { return e.Problem }

func (s Snapshot) validate() error {
	switch {
	case s.Quorum && (s.Roster == nil || len(s.Roster.Voters) == 0):
		return errors.New("the first roster is not formed yet, so nothing can be planned")
	case len(s.Agents) == 0:
		return errors.New("no agent is alive")
	}
	return nil
}

// lay checks that the faults name agents of the snapshot. It returns each agent's group number, which
// is -1 for an agent that goes down.
func (s Snapshot) lay(f Faults) (map[election.PeerID]int, error) {
	groups := map[election.PeerID]int{}
	for _, a := range s.Agents {
		groups[a.Peer] = 0
	}
	grouped := map[string]bool{}
	for g, names := range f.Groups {
		if len(names) == 0 {
			return nil, &InputError{"a side of the cut is empty", "write the sides as a,b|c,d"}
		}
		for _, name := range names {
			if grouped[name] {
				return nil, &InputError{fmt.Sprintf("%s is on two sides of the cut", name), "name each agent once"}
			}
			grouped[name] = true
			if err := s.move(name, groups, g+1); err != nil {
				return nil, err
			}
		}
	}
	if f.To != "" && !slices.ContainsFunc(s.Agents, func(a Agent) bool { return a.Name == f.To }) {
		return nil, &InputError{fmt.Sprintf("no live agent is named %q", f.To), "`doyen members` lists the names"}
	}
	for _, name := range slices.Concat(f.Down, f.Stopped) {
		if err := s.move(name, groups, -1); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		if g >= 0 {
			return groups, nil
		}
	}
	return nil, &InputError{"no agent is left", "leave at least one agent up"}
}

// move puts an agent into a group. It does nothing for a voter that is already down.
func (s Snapshot) move(name string, groups map[election.PeerID]int, group int) error {
	if a, alive := each.First(s.Agents, func(a Agent) bool { return a.Name == name }); alive {
		groups[a.Peer] = group
		return nil
	}
	if _, voter := s.Roster.Named(name); voter {
		return nil
	}
	return &InputError{fmt.Sprintf("there is no agent named %q", name), "`doyen members` lists the names"}
}

// ranked gives every candidate of an election a priority. Except in the election default, only the order of the
// candidates is known. So a candidate that precedes an older one gets a higher priority than that one, and every
// other candidate the priority of the one that follows it.
func (s Snapshot) ranked(e Election) map[election.PeerID]int {
	priorities := map[election.PeerID]int{}
	if e.Name == election.Default {
		for _, c := range e.Candidates {
			if a, ok := s.agent(c); ok {
				priorities[c] = a.Priority
			}
		}
		return priorities
	}
	priority, before := election.DefaultPriority, Agent{}
	for _, c := range slices.Backward(e.Candidates) {
		a, ok := s.agent(c)
		if !ok {
			continue
		}
		// The loop goes from the worst candidate to the best.
		if before.Peer != "" && cmp.Or(cmp.Compare(a.JoinedAt, before.JoinedAt), cmp.Compare(before.Peer, a.Peer)) > 0 {
			priority++
		}
		priorities[c], before = priority, a
	}
	return priorities
}

func (s Snapshot) agent(p election.PeerID) (Agent, bool) {
	return each.First(s.Agents, func(a Agent) bool { return a.Peer == p })
}
