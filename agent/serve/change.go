package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
)

// outcomeSlack is how much longer than two leases the server waits for the outcome of a command.
const outcomeSlack = time.Second

func (s *Server) resign(c *call[api.ResignRequest]) (any, error) {
	if leader, term, elsewhere := s.leaderElsewhere(c.Request, c.election); elsewhere {
		c.body.Term = cmp.Or(c.body.Term, term)
		return s.forward(c.Request, leader, c.body)
	}
	return s.handOver(c.Request, c.election, func(id election.RequestID) election.Input {
		return election.Resign{Election: c.election, Term: election.Term(c.body.Term), Request: id}
	}, "")
}

func (s *Server) transfer(c *call[api.TransferRequest]) (any, error) {
	if !election.ValidName(c.body.To) {
		return nil, badRequest(`"to" must name an agent, as {"to":"b"}`)
	}
	target, ok := named(s.Picture(), c.body.To)
	if !ok {
		return nil, unknownMember(c.body.To)
	}
	if leader, term, elsewhere := s.leaderElsewhere(c.Request, c.election); elsewhere {
		c.body.Term = cmp.Or(c.body.Term, term)
		return s.forward(c.Request, leader, c.body)
	}
	if e := s.seen(c.election); e.IsLeader && target == s.Self.Peer {
		return &api.Outcome{Done: true, Message: "it leads already; nothing was handed over", Leader: e.Leader, Term: e.Term}, nil
	}
	return s.transferTo(c.Request, c.election, target, election.Term(c.body.Term))
}

func (s *Server) transferTo(r *http.Request, name election.Name, target election.PeerID, t election.Term) (any, error) {
	return s.handOver(r, name, func(id election.RequestID) election.Input {
		return election.Transfer{Election: name, To: target, Term: t, Request: id}
	}, target)
}

// seen returns an election as this agent sees it now.
func (c *Config) seen(name election.Name) api.Election {
	p := c.Picture()
	contest, _ := p.contest(name)
	return p.Election(contest, c.Clock(), 0)
}

func named(p *Picture, name string) (election.PeerID, bool) {
	m, ok := each.First(p.View.Members, func(m membership.Member) bool { return m.Name == name && m.Status != membership.Dead })
	return m.Peer, ok
}

// handOver gives the command to the agent, and waits until the agent knows a leader in a higher term.
func (s *Server) handOver(r *http.Request, name election.Name,
	command func(election.RequestID) election.Input, target election.PeerID,
) (any, error) {
	before, exists := s.Picture().contest(name)
	if !exists {
		return nil, unknownElection(name)
	}
	ctx, cancel := s.outcomeTime(r)
	defer cancel()
	if _, err := s.ask(ctx, command); err != nil {
		return nil, err
	}
	e, known := s.successor(ctx, name, before.Term)
	switch {
	case !known:
		return &api.Outcome{Done: target == "", Message: "this agent stepped down; nobody leads yet"}, nil
	case target != "" && e.Leader.ID != string(target):
		return &api.Outcome{Message: "the target did not take over; " + e.Leader.Name + " did", Leader: e.Leader, Term: e.Term}, nil
	}
	return &api.Outcome{Done: true, Message: s.comesBack(name, election.PeerID(e.Leader.ID)), Leader: e.Leader, Term: e.Term}, nil
}

// ask makes the agent carry out a command. The error may be the agent's refusal.
func (s *Server) ask(ctx context.Context, command func(election.RequestID) election.Input) (election.Reply, error) {
	reply, err := s.Ask(ctx, command)
	if err == nil && reply.Refusal != nil {
		err = words.Refusal(reply.Refusal)
	}
	return reply, err
}

// comesBack is a warning that this agent, which has just handed over, will lead again because of its
// higher priority; empty: it will not.
func (s *Server) comesBack(name election.Name, leader election.PeerID) string {
	p := s.Picture()
	mine, stands := p.rank(name, s.Self.Peer)
	theirs, found := p.rank(name, leader)
	preempt, delay := s.Preemption()
	if !stands || !found || !preempt || p.Status.Draining || mine.Priority <= theirs.Priority {
		return ""
	}
	return fmt.Sprintf("this agent has the higher priority and takes the lead back after %s, unless it is drained", delay)
}

func (s *Server) outcomeTime(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), 2*s.lease()+outcomeSlack)
}

// successor waits until somebody leads in a higher term.
func (s *Server) successor(ctx context.Context, name election.Name, above election.Term) (api.Election, bool) {
	follower, err := s.Hub.Follow(string(name), 0)
	if err != nil {
		return api.Election{}, false
	}
	defer follower.Close()
	for {
		if e := s.seen(name); e.Leader != nil && e.Term > uint64(above) {
			return e, true
		}
		if !follower.Wait(ctx) {
			return api.Election{}, false
		}
		follower.Take() // the changes are not needed: the picture shows them
	}
}

// drain answers once other agents lead what this agent led, except elections that no other agent can lead.
func (s *Server) drain(c *call[drainRequest]) (any, error) {
	if c.body.On == nil {
		return nil, badRequest(`"on" must be true or false`)
	}
	on := *c.body.On
	if c.body.Agent != "" && c.body.Agent != s.Name {
		return s.drainOther(c.Request, api.DrainRequest{On: on, Force: c.body.Force, Agent: c.body.Agent})
	}
	if last := s.deserted(); on && !c.body.Force && last != "" {
		return nil, refusal(api.CodeNoCandidate, "this agent is the last candidate in "+last+
			", which its configuration expects: start another candidate first, or drain it all the same with --force (\"force\":true)")
	}
	ctx, cancel := s.outcomeTime(c.Request)
	defer cancel()
	var led []*elector.ContestStatus
	if on {
		led = s.leading()
		if err := s.keepDrain(true); err != nil {
			return nil, err
		}
	}
	_, err := s.ask(ctx, func(id election.RequestID) election.Input { return election.Drain{On: on, Request: id} })
	if err == nil && !on {
		err = s.keepDrain(false)
	}
	if err != nil {
		return nil, err
	}
	return s.await(ctx, led), nil
}

// drainRequest is an api.DrainRequest that shows whether "on" is given.
type drainRequest struct {
	On    *bool  `json:"on"`
	Force bool   `json:"force"`
	Agent string `json:"agent"`
}

// drainOther drains another agent.
func (s *Server) drainOther(r *http.Request, request api.DrainRequest) (any, error) {
	target, ok := named(s.Picture(), request.Agent)
	if !ok {
		return nil, unknownMember(request.Agent)
	}
	if !s.mayForward(r) {
		return nil, refusal(api.CodeForbidden, "this agent is not a voter, and others accept changes only from voters: run the command on the host of "+request.Agent+", or of a voter")
	}
	return s.forward(r, target, request)
}

// deserted names the expected elections that nobody could lead if this agent were drained, with
// commas between them.
func (s *Server) deserted() string {
	p := s.Picture()
	var names []string
	for _, name := range p.Expected {
		c, _ := p.contest(name)
		if slices.Contains(c.Candidates, s.Self.Peer) && !s.succeedable(name) {
			names = append(names, string(name))
		}
	}
	return strings.Join(names, ", ")
}

// keepDrain saves for the next starts whether the agent is drained. The caller saves a drain before
// it drains the agent, and removes it after the drain has ended: after a crash in between, the agent
// starts drained.
func (s *Server) keepDrain(on bool) error {
	if err := s.KeepDrain(on); err != nil {
		return refusal(api.CodeUnavailable, "the drain could not be saved, so a restart would undo it: "+err.Error())
	}
	return nil
}

// leading returns the elections that this agent leads.
func (s *Server) leading() []*elector.ContestStatus {
	return slices.DeleteFunc(slices.Clone(s.Picture().Status.Contests), func(c *elector.ContestStatus) bool {
		h, ok := c.LeaderAt(s.Clock())
		return !ok || h != s.Self
	})
}

// await waits until everything that was led here has a successor, and reports the first one.
func (s *Server) await(ctx context.Context, led []*elector.ContestStatus) *api.Outcome {
	outcome := &api.Outcome{Done: true}
	for _, l := range led {
		if !s.succeedable(l.Election) {
			outcome.Message = "nobody else can lead " + string(l.Election)
			continue
		}
		e, known := s.successor(ctx, l.Election, l.Term)
		switch {
		case !known || e.Leader.ID == string(s.Self.Peer):
			outcome.Message = "no other agent leads " + string(l.Election) + " yet"
		case outcome.Leader == nil:
			outcome.Leader, outcome.Term = e.Leader, e.Term
		}
	}
	return outcome
}

// succeedable reports whether another agent could lead the election. Agents that have just stepped
// down count too: they are not in c.Candidates, but lead again if no other agent can.
func (s *Server) succeedable(name election.Name) bool {
	p := s.Picture()
	c, _ := p.contest(name)
	if slices.ContainsFunc(c.Candidates, func(id election.PeerID) bool { return id != s.Self.Peer && p.Connected[id] }) {
		return true
	}
	return slices.ContainsFunc(c.Ranks, func(r election.Rank) bool {
		m, ok := p.member(r.Peer)
		return ok && r.Priority > 0 && !m.Draining && r.Peer != s.Self.Peer && p.Connected[r.Peer]
	})
}

// leave answers once everything is handed over, and before the process ends.
func (s *Server) leave(c *call[struct{}]) (any, error) {
	ctx, cancel := s.outcomeTime(c.Request)
	defer cancel()
	if err := s.Leave(ctx); err != nil {
		return nil, err
	}
	c.then = func() {}
	return &api.Outcome{Done: true}, nil
}

func (s *Server) reload(*call[struct{}]) (any, error) {
	began := s.Clock()
	outcome := s.Reload()
	outcome.Waited = s.Clock().Sub(began).Milliseconds()
	return outcome, nil
}

// restart answers before the process ends. The answers of the next process have another boot ID.
func (s *Server) restart(c *call[struct{}]) (any, error) {
	handsOver, err := s.Restart(c.Context())
	if err != nil {
		return &api.Outcome{Message: err.Error()}, nil
	}
	c.then = func() { s.Restarts(handsOver) }
	outcome := &api.Outcome{Done: true}
	if handsOver != "" {
		outcome.Message = "what this agent leads is handed over, since " + handsOver
	}
	return outcome, nil
}
