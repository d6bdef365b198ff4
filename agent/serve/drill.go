package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

const (
	// betweenDrills is how long after a drill the next one is refused, so that all elections have leaders again.
	betweenDrills = time.Minute
	// drillChanges is how many changes of its history an agent shows: that many fit into one answer.
	drillChanges = 64
	drillCall    = "drill " // the start of a drill's commandText
	// tryTime is how long a drill, before it stops an agent, may check that the agent could start again.
	tryTime = 8 * time.Second
)

// drills collects the drill views of all agents. A call from another agent gets only this agent's view.
func (s *Server) drills(r *http.Request) (any, error) {
	name, err := name(r)
	if err == nil && !isForwarded(r) {
		err = s.mayAsk(r, questionsTo(s.Picture()))
	}
	if err != nil {
		return nil, err
	}
	all := []api.DrillView{s.drillView(name)}
	if !isForwarded(r) {
		call := election.Call{Method: http.MethodGet, Path: r.URL.Path, Caller: callerWords(r)}
		all = append(all, askOthers(r.Context(), s.others, call, func(m membership.Member, its *api.DrillView) api.DrillView {
			v := *cmp.Or(its, &api.DrillView{Changes: []api.Transition{}})
			v.Name, v.ID = m.Name, string(m.Peer) // the connection proves which agent this is, and the answer does not
			return v
		})...)
		slices.SortFunc(all, func(a, b api.DrillView) int { return strings.Compare(a.Name, b.Name) })
	}
	return api.Drills{Agents: all}, nil
}

func (s *Server) drillView(name election.Name) api.DrillView {
	v := api.DrillView{Name: s.Name, ID: string(s.Self.Peer), Reached: true, BootID: s.Run.String(), Keeper: s.Keeper, Changes: s.History("", drillChanges)}
	v.Record, v.Service = s.Lasts()
	for i := range v.Changes {
		v.Changes[i].Evidence = ""
	}
	if why := s.againstDrill(name); why != nil {
		v.Refused = why.Error()
	}
	return v
}

// drill makes the leader transfer or stop, as requested. If another agent leads, it forwards the request there.
func (s *Server) drill(c *call[api.DrillRequest]) (any, error) {
	name, err := name(c.Request)
	if err != nil {
		return nil, err
	}
	right := access.Admin
	switch c.body.How {
	case api.DrillTransfer:
		right = access.HandOver
	case api.DrillStop:
	default:
		return nil, badRequest(`"how" must be transfer or stop: an agent is killed on its own host, as by kill -9`)
	}
	if err := s.may(c.Request, right, string(name)); err != nil {
		return nil, err
	}
	entry := s.entry(c.Request, right, map[string]any{"how": c.body.How, "term": c.body.Term})
	if leader, _, elsewhere := s.leaderElsewhere(c.Request, name); elsewhere {
		outcome, err := s.forward(c.Request, leader, c.body)
		s.entered(entry, err)
		return outcome, err
	}
	if err := s.mayDrill(name, c.body); err != nil {
		return nil, err
	}
	if c.body.How == api.DrillTransfer {
		target, _ := named(s.Picture(), c.body.To)
		outcome, err := s.transferTo(c.Request, name, target, election.Term(c.body.Term))
		s.entered(entry, err)
		return outcome, err
	}
	if _, err := s.Restart(c.Context()); err != nil {
		return nil, refusal(api.CodeUnavailable, "this agent could not start again: "+err.Error())
	}
	s.entered(entry, nil)
	c.then = func() { time.AfterFunc(api.DrillDelay, func() { s.Restarts("this is a drill") }) }
	return &api.Outcome{Done: true, Message: fmt.Sprintf("%s in %s", c.body.How, api.DrillDelay)}, nil
}

// mayDrill returns why this agent, as the leader, can't run the drill; nil: it can.
func (s *Server) mayDrill(name election.Name, request api.DrillRequest) error {
	e := s.seen(name)
	target, known := named(s.Picture(), request.To)
	switch {
	case !e.IsLeader:
		return refusal(api.CodeNotLeader, "this agent does not lead "+string(name))
	case e.Term != request.Term:
		return refusal(api.CodeBusy, fmt.Sprintf("this agent leads in term %d and not in term %d as it was planned: plan the drill again", e.Term, request.Term))
	case request.How == api.DrillTransfer && (!known || target == s.Self.Peer):
		return refusal(api.CodeBadRequest, `"to" must name another live agent for a transfer, as {"how":"transfer","to":"b"}`)
	}
	if why := s.againstDrill(name); why != nil {
		return why
	}
	for _, c := range s.Picture().Status.Contests {
		if s.seen(c.Election).IsLeader && request.How != api.DrillTransfer && !s.succeedable(c.Election) {
			return refusal(api.CodeNoCandidate, "this agent leads "+string(c.Election)+" too, and nobody else can lead it")
		}
	}
	return nil
}

// againstDrill returns why a drill of the election should not be run now; nil: this agent knows no reason.
func (s *Server) againstDrill(name election.Name) error {
	p, now := s.Picture(), s.Clock()
	q := p.Status.Quorum
	switch {
	case q.Enabled && !q.Exists:
		return refusal(api.CodeNoQuorum, "a majority of the voters can't be reached")
	case q.Enabled && q.Edge:
		return refusal(api.CodeNoQuorum, fmt.Sprintf("one more loss would cost the quorum: %d of %d voters can be reached, and %d are needed", q.Reachable, q.Voters, q.Needed))
	case q.Enabled && p.Status.Roster.Joint():
		return refusal(api.CodeBusy, "a change of the voters is under way: `doyen voters` shows it")
	}
	for _, c := range p.Status.Contests {
		if _, led := c.LeaderAt(now); !led && c.State != elector.Idle {
			return refusal(api.CodeBusy, "nobody leads "+string(c.Election)+" now: an election is under way")
		}
	}
	if s.seen(name).IsLeader && !s.succeedable(name) {
		return refusal(api.CodeNoCandidate, "no other agent can lead "+string(name)+": all are drained, have priority 0, or can't be reached")
	}
	for _, t := range s.History("", drillChanges) {
		since := now.Sub(election.Instant(t.BoottimeNS))
		if t.Type == api.ChangeCommand && strings.HasPrefix(t.Reason, drillCall) && since >= 0 && since < betweenDrills {
			return refusal(api.CodeBusy, fmt.Sprintf("there was a drill %s ago: wait until a minute has passed", since.Truncate(time.Second)))
		}
	}
	return nil
}
