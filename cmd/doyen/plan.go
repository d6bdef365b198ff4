package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/internal/plan"
)

// maxPlanned bounds the number of names in a question.
const maxPlanned = 1024

func planned(i *invocation) error {
	faults, err := i.faults()
	if err != nil {
		return err
	}
	s, err := i.askState()
	if err != nil {
		return err
	}
	report, err := plan.Ask(s.snapshot(), faults, 1)
	if err != nil {
		if bad, ok := errors.AsType[*plan.InputError](err); ok {
			return usage(bad.Hint, "plan: %s", bad.Problem)
		}
		return &failure{code: exitFailed, what: "plan", err: err, hint: "`doyen status` shows what this agent knows"}
	}
	return i.show(report, planPage(report, s.agent.Quorum.Enabled))
}

// faults reads --down and --cut. Further arguments are more names for --down.
func (i *invocation) faults() (f plan.Faults, err error) {
	if i.NArg() > 0 && !i.IsSet("down") {
		return f, usage("write: doyen plan --down NAME", "plan: %q is not a flag", i.Args().Get(0))
	}
	f.Down, err = i.names(append(i.StringSlice("down"), i.Args().Slice()...), "write --down a, --down a,b or --down a --down b")
	if err != nil || !i.IsSet("cut") {
		return f, err
	}
	for side := range strings.SplitSeq(i.String("cut"), "|") {
		names, err := i.names([]string{side}, "write --cut 'a,b|c,d', or --cut a to cut a off")
		if err != nil {
			return f, err
		}
		f.Groups = append(f.Groups, names)
	}
	return f, nil
}

// state is what a plan depends on, as this host's agent reports it.
type state struct {
	agent     api.Agent
	members   []api.Member
	voters    api.Voters
	elections []api.Election
}

func (i *invocation) askState() (s state, err error) {
	ctx := i.question()
	c := i.client()
	defer c.Close()
	s.agent, err = c.Agent(ctx)
	if err == nil {
		s.members, err = c.Members(ctx)
	}
	if err == nil {
		s.voters, err = c.Voters(ctx)
	}
	if err == nil {
		s.elections, err = c.Elections(ctx)
	}
	if err == nil && (s.agent.LeaseMS == 0 || s.agent.HeartbeatMS == 0) {
		err = &failure{code: exitFailed, what: "this agent does not report its timing", hint: "it runs an older version: upgrade it"}
	}
	return s, wrap.Error(err, "ask for the live state")
}

// snapshot returns the state in the form that package plan uses.
func (from state) snapshot() plan.Snapshot {
	a, voters := from.agent, from.voters
	s := plan.Snapshot{
		Algorithm: a.Algorithm, Quorum: a.Quorum.Enabled,
		Timing:  election.Timing{Heartbeat: milliseconds(a.HeartbeatMS), Lease: milliseconds(a.LeaseMS)},
		Preempt: a.Preempt, PreemptDelay: milliseconds(a.PreemptDelayMS),
	}
	if len(voters.Voters) > 0 {
		s.Roster = &election.Roster{Cluster: voters.Cluster, Floor: election.Term(voters.Floor),
			Version: election.Version{Driver: election.Term(voters.Version.Driver), Counter: voters.Version.Counter},
			Voters:  rosterHalf(voters.Voters), Next: rosterHalf(voters.Next),
			Committed: voters.Change != nil && voters.Change.Committed && len(voters.Next) > 0}
	}
	ids := map[string]election.PeerID{}
	for _, m := range from.members {
		if m.Status == api.StatusAlive || m.Status == api.StatusSuspect {
			ids[m.Name] = election.PeerID(m.ID)
			s.Agents = append(s.Agents, plan.Agent{Name: m.Name, Peer: election.PeerID(m.ID),
				JoinedAt: m.JoinedAt.UnixNano(), Priority: m.Priority, RTT: milliseconds(m.RTTMS)})
		}
	}
	for _, e := range from.elections {
		one := plan.Election{Name: election.Name(e.Election), Term: election.Term(e.Term)}
		if e.Leader != nil {
			one.Leader = election.PeerID(e.Leader.ID)
		}
		for _, name := range e.Candidates {
			if id, alive := ids[name]; alive {
				one.Candidates = append(one.Candidates, id)
			}
		}
		s.Elections = append(s.Elections, one)
	}
	return s
}

func rosterHalf(voters []api.Voter) []election.Voter {
	half := each.Of(voters, func(v api.Voter) election.Voter { return election.Voter{Name: v.Name, Peer: election.PeerID(v.ID)} })
	election.SortVoters(half)
	return half
}

func planPage(r plan.Report, quorum bool) string {
	var page strings.Builder
	if len(r.Down) > 0 {
		fmt.Fprintf(&page, "down: %s\n\n", printable(strings.Join(r.Down, ", ")))
	}
	sides := [][]string{{"SIDE", "AGENTS", "QUORUM"}}
	for n, s := range r.Sides {
		state := "none needed"
		if quorum {
			state = fmt.Sprintf("%s: %d of %d voters, %d needed", yesNo(s.Quorum), s.Reachable, s.Voters, s.Needed)
		}
		sides = append(sides, []string{fmt.Sprint(n + 1), strings.Join(s.Agents, ","), state})
	}
	rows := [][]string{{"ELECTION", "NOW", "TERM", "THEN", "SIDE", "TERM", "WITHIN", "WITHOUT A LEADER"}}
	for _, f := range r.Elections {
		rows = append(rows, forecastRows(f)...)
	}
	page.WriteString(table(sides) + "\n" + table(rows))
	if !r.Settled {
		page.WriteString("\nnot settled: in some runs the result was still changing at the end\n")
	}
	return page.String()
}

func forecastRows(f plan.Forecast) [][]string {
	first := []string{f.Election, f.Leader, fmt.Sprint(f.Term)}
	missing := strings.Join(f.Leaderless, ",")
	if len(f.Then) == 0 {
		return [][]string{append(first, "", "", "", "", missing)}
	}
	var rows [][]string
	for _, t := range f.Then {
		who := strings.Join(t.Leaders, " or ")
		within := fmt.Sprintf("%s to %s", span(t.EarliestMS), span(t.LatestMS))
		if t.Stays {
			within = "stays"
		}
		if !t.Certain {
			who += ", or nobody"
		}
		rows = append(rows, append(first, who, fmt.Sprint(t.Side+1), fmt.Sprint(t.Term), within, missing))
		first, missing = []string{" ", " ", " "}, " "
	}
	return rows
}

// span writes a duration with few digits: hundredths of a second from one second on, seconds from one minute
// on.
func span(ms int64) string {
	switch d := milliseconds(ms); {
	case d < time.Second:
		return d.String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	default:
		return age(d)
	}
}
