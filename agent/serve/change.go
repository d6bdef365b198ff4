package serve

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// outcomeSlack is how much longer than two leases the server waits for an outcome.
const outcomeSlack = time.Second

func (s *Server) resign(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	if !ok || !body(w, r, &struct{}{}) {
		return
	}
	if leader, elsewhere := s.leaderElsewhere(r, name); elsewhere {
		s.forward(w, r, leader, struct{}{})
		return
	}
	s.handOver(w, r, name, func(id election.RequestID) election.Input {
		return election.Resign{Election: name, Request: id}
	}, "")
}

func (s *Server) transfer(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	var request api.TransferRequest
	if !ok || !body(w, r, &request) {
		return
	}
	if !election.ValidName(request.To) {
		badRequest(w, `"to" must name an agent, as {"to":"b"}`)
		return
	}
	target, ok := named(s.Picture(), request.To)
	if !ok {
		fail(w, http.StatusNotFound, api.ErrorDetail{Code: api.CodeNotFound, Message: "no live member is named " + request.To})
		return
	}
	if leader, elsewhere := s.leaderElsewhere(r, name); elsewhere {
		s.forward(w, r, leader, request)
		return
	}
	if target == s.Self.Peer {
		if e, leads := s.led(name); leads {
			answer(w, api.Outcome{Done: true, Message: "it leads already; nothing was handed over", Leader: e.Leader, Term: e.Term})
			return
		}
	}
	s.handOver(w, r, name, func(id election.RequestID) election.Input {
		return election.Transfer{Election: name, To: target, Request: id}
	}, target)
}

// led returns the election if this agent leads it now.
func (s *Server) led(name election.Name) (api.Election, bool) {
	p := s.Picture()
	c, _ := p.contest(name)
	e := p.Election(c, s.Clock(), 0)
	return e, e.IsLeader
}

func named(p *Picture, name string) (election.PeerID, bool) {
	for _, m := range p.View.Members {
		if m.Name == name && m.Status != membership.Dead {
			return m.Peer, true
		}
	}
	return "", false
}

// handOver gives the command to the agent, and waits until another leader, or a higher term,
// is known.
func (s *Server) handOver(w http.ResponseWriter, r *http.Request, name election.Name,
	command func(election.RequestID) election.Input, target election.PeerID,
) {
	before, exists := s.Picture().contest(name)
	if !exists {
		unknownElection(w, name)
		return
	}
	began := s.Clock()
	ctx, cancel := s.outcomeTime(r)
	defer cancel()
	follower, err := s.Hub.Await(string(name))
	if err != nil {
		unanswered(w, err)
		return
	}
	defer follower.Close()
	reply, err := s.Ask(ctx, command)
	switch {
	case err != nil:
		unanswered(w, err)
		return
	case reply.Refusal != nil:
		refuse(w, words.Refusal(reply.Refusal))
		return
	}
	e, known := s.successor(ctx, follower, name, before.Term)
	outcome := api.Outcome{Done: true, Waited: s.Clock().Sub(began).Milliseconds()}
	switch {
	case !known:
		outcome.Message = "this agent stepped down; nobody leads yet"
		outcome.Done = target == ""
	default:
		outcome.Leader, outcome.Term = e.Leader, e.Term
		if target != "" && e.Leader.ID != string(target) {
			outcome.Done = false
			outcome.Message = "the target did not take over; " + e.Leader.Name + " did"
		} else {
			outcome.Message = s.comesBack(name, election.PeerID(e.Leader.ID))
		}
	}
	answer(w, outcome)
}

// comesBack warns if this agent will soon lead again by its higher priority, although an
// operator has made it hand over.
func (s *Server) comesBack(name election.Name, leader election.PeerID) string {
	p := s.Picture()
	mine, stands := p.rank(name, s.Self.Peer)
	theirs, found := p.rank(name, leader)
	preempt, delay := s.preemption()
	if !stands || !found || !preempt || p.Status.Draining || mine.Priority <= theirs.Priority {
		return ""
	}
	return fmt.Sprintf("this agent has the higher priority and takes the lead back after %s, unless it is drained", delay)
}

func (s *Server) outcomeTime(r *http.Request) (context.Context, context.CancelFunc) {
	limit := 2*s.lease() + outcomeSlack
	return context.WithTimeout(r.Context(), limit)
}

// successor waits until somebody leads in a higher term.
func (s *Server) successor(ctx context.Context, f *watch.Follower, name election.Name, above election.Term) (api.Election, bool) {
	for {
		p := s.Picture()
		c, _ := p.contest(name)
		if e := p.Election(c, s.Clock(), 0); e.Leader != nil && c.Term > above {
			return e, true
		}
		select {
		case _, open := <-f.Ready():
			if !open {
				return api.Election{}, false
			}
			f.Take() // the picture shows it
		case <-ctx.Done():
			return api.Election{}, false
		}
	}
}

// drain answers once others lead what this agent led, or nobody can.
func (s *Server) drain(w http.ResponseWriter, r *http.Request) {
	var request struct {
		On    *bool  `json:"on"`
		Force bool   `json:"force"`
		Agent string `json:"agent"`
	}
	if !body(w, r, &request) {
		return
	}
	if request.On == nil {
		badRequest(w, `"on" must be true or false`)
		return
	}
	if request.Agent != "" && request.Agent != s.Name {
		s.drainOther(w, r, api.DrainRequest{On: *request.On, Force: request.Force, Agent: request.Agent})
		return
	}
	if last := s.deserted(); *request.On && !request.Force && last != "" {
		refuse(w, &api.ErrorDetail{Code: api.CodeNoCandidate, Message: "this agent is the last candidate in " + last +
			", which its configuration expects: start another candidate first, or drain it all the same with --force (\"force\":true)"})
		return
	}
	began := s.Clock()
	ctx, cancel := s.outcomeTime(r)
	defer cancel()
	var led []lead
	if *request.On {
		led = s.leading()
	}
	defer closeAll(led)
	if *request.On && !s.keepDrain(w, true) {
		return
	}
	reply, err := s.Ask(ctx, func(id election.RequestID) election.Input {
		return election.Drain{On: *request.On, Request: id}
	})
	switch {
	case err != nil:
		unanswered(w, err)
		return
	case reply.Refusal != nil:
		refuse(w, words.Refusal(reply.Refusal))
		return
	}
	if !*request.On && !s.keepDrain(w, false) {
		return
	}
	outcome := api.Outcome{Done: true}
	s.await(ctx, led, &outcome)
	outcome.Waited = s.Clock().Sub(began).Milliseconds()
	answer(w, outcome)
}

// drainOther drains another agent.
func (s *Server) drainOther(w http.ResponseWriter, r *http.Request, request api.DrainRequest) {
	target, ok := named(s.Picture(), request.Agent)
	switch {
	case !ok:
		fail(w, http.StatusNotFound, api.ErrorDetail{Code: api.CodeNotFound, Message: "no live member is named " + clip(request.Agent)})
	case !s.mayForward(r):
		fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: "this agent is not a voter, and others accept changes only from voters: run the command on the host of " + request.Agent + ", or of a voter"})
	default:
		s.forward(w, r, target, request)
	}
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

// keepDrain keeps a drain over restarts. If the disk does not accept it, keepDrain answers and
// returns false. The drain is written before the agent drains, and removed after the drain has
// ended: a crash in between leaves a drained agent.
func (s *Server) keepDrain(w http.ResponseWriter, on bool) bool {
	if s.KeepDrain == nil {
		return true
	}
	if err := s.KeepDrain(on); err != nil {
		fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: api.CodeUnavailable,
			Message: "the drain could not be saved, so a restart would undo it: " + err.Error()})
		return false
	}
	return true
}

// lead is an election that this agent leads, with a follower from before the hand-over.
type lead struct {
	name     election.Name
	term     election.Term
	follower *watch.Follower
}

// leading returns what this agent leads. It skips an election that can't be followed: then
// nobody waits for that one's outcome.
func (s *Server) leading() []lead {
	var led []lead
	for _, c := range s.Picture().Status.Contests {
		if h, ok := c.LeaderAt(s.Clock()); !ok || h != s.Self {
			continue
		}
		if f, err := s.Hub.Await(string(c.Election)); err == nil {
			led = append(led, lead{c.Election, c.Term, f})
		}
	}
	return led
}

func closeAll(led []lead) {
	for _, l := range led {
		l.follower.Close()
	}
}

// await waits for the successors of everything led here, and reports the first one.
func (s *Server) await(ctx context.Context, led []lead, outcome *api.Outcome) {
	for _, l := range led {
		if !s.succeedable(l.name) {
			outcome.Message = "nobody else can lead " + string(l.name)
			continue
		}
		e, known := s.successor(ctx, l.follower, l.name, l.term)
		switch {
		case !known:
			outcome.Message = "nobody leads " + string(l.name) + " yet"
		case outcome.Leader == nil:
			outcome.Leader, outcome.Term = e.Leader, e.Term
		}
	}
}

// succeedable reports whether another agent could lead the election. Agents that have just
// stepped down count too, although they are asked only if there is nobody else.
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

// leave answers once everything is handed over, and before the agent is gone.
func (s *Server) leave(w http.ResponseWriter, r *http.Request) {
	if !body(w, r, &struct{}{}) {
		return
	}
	began := s.Clock()
	ctx, cancel := s.outcomeTime(r)
	defer cancel()
	if err := s.Leave(ctx); err != nil {
		unanswered(w, err)
		return
	}
	w.Header().Set("Connection", "close")
	answer(w, api.Outcome{Done: true, Waited: s.Clock().Sub(began).Milliseconds()})
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	if !body(w, r, &struct{}{}) {
		return
	}
	began := s.Clock()
	outcome := s.Reload()
	outcome.Waited = s.Clock().Sub(began).Milliseconds()
	answer(w, outcome)
}

// restart answers before the process ends. The next process has another boot ID.
func (s *Server) restart(w http.ResponseWriter, r *http.Request) {
	if !body(w, r, &struct{}{}) {
		return
	}
	began := s.Clock()
	handsOver, err := s.Restart(r.Context())
	if err != nil {
		answer(w, api.Outcome{Message: err.Error(), Waited: s.Clock().Sub(began).Milliseconds()})
		return
	}
	w.Header().Set("Connection", "close")
	message := ""
	if handsOver != "" {
		message = "what this agent leads is handed over, since " + handsOver
	}
	answer(w, api.Outcome{Done: true, Message: message, Waited: s.Clock().Sub(began).Milliseconds()})
	_ = http.NewResponseController(w).Flush()
	s.Restarts(handsOver)
}
