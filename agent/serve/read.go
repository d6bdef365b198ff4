package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

func (s *Server) agent(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.describe(s.Picture()))
}

// describe returns the answer to GET /v1/agent.
func (s *Server) describe(p *Picture) api.Agent {
	preempt, delay := s.preemption()
	agreed := s.agreed(p)
	return api.Agent{
		Name: s.Name, ID: string(s.Self.Peer), BootID: s.Run.String(), Lineage: s.Self.Lineage.String(), Life: s.Life, Keeper: s.Keeper, Version: s.Version,
		Cluster: s.Cluster, Algorithm: agreed.Algorithm, PID: os.Getpid(),
		UptimeMS: s.Clock().Sub(s.started).Milliseconds(),
		Draining: p.Status.Draining, Quorum: p.Quorum(), Warnings: p.Warnings,
		HeartbeatMS: s.Heartbeat.Milliseconds(), LeaseMS: agreed.LeaseMS,
		Preempt: preempt, PreemptDelayMS: delay.Milliseconds(),
	}
}

func (s *Server) members(w http.ResponseWriter, _ *http.Request) {
	answer(w, api.Members{Members: s.Picture().Members()})
}

func (s *Server) elections(w http.ResponseWriter, r *http.Request) {
	quorum, ok := consistency(w, r)
	switch {
	case !ok:
	case quorum:
		s.allConfirmed(w, r)
	default:
		answer(w, api.Elections{Elections: s.Picture().Elections(s.Clock(), s.Hub.Index)})
	}
}

func (s *Server) election(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	if !ok {
		return
	}
	p := s.Picture()
	c, exists := p.contest(name)
	if !exists {
		unknownElection(w, name)
		return
	}
	quorum, ok := consistency(w, r)
	switch {
	case !ok:
	case quorum && !s.mayAsk(w, r, 1):
	case quorum:
		ctx, cancel := context.WithTimeout(r.Context(), 2*s.lease())
		defer cancel()
		e, err := s.confirmed(ctx, name)
		if err != nil {
			refused(w, err)
			return
		}
		answer(w, e)
	default:
		answer(w, p.Election(c, s.Clock(), s.Hub.Index(string(name))))
	}
}

// consistency reports whether the request wants a majority to be asked first.
func consistency(w http.ResponseWriter, r *http.Request) (quorum, ok bool) {
	if r.URL.RawQuery == "" {
		return false, true
	}
	switch r.URL.Query().Get("consistency") {
	case "":
		return false, true
	case "quorum":
		return true, true
	}
	fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: "consistency must be quorum, or be omitted"})
	return false, false
}

// maxConfirmed bounds the elections that one call asks a majority about: each is a separate
// question, and the elector accepts only so many at once.
const maxConfirmed = 32

// allConfirmed asks a majority about each election before it answers. Only one call at a time
// does so, which leaves room for questions about single elections.
func (s *Server) allConfirmed(w http.ResponseWriter, r *http.Request) {
	contests := s.Picture().contests()
	if len(contests) > maxConfirmed {
		fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: fmt.Sprintf(
			"consistency=quorum works for at most %d elections at once, and there are %d: ask for each by its name", maxConfirmed, len(contests))})
		return
	}
	if !s.mayAsk(w, r, len(contests)) {
		return
	}
	all, giveUp := context.WithCancelCause(r.Context())
	defer giveUp(nil)
	ctx, cancel := context.WithTimeout(all, 2*s.lease())
	defer cancel()
	select {
	case s.confirming <- struct{}{}:
		defer func() { <-s.confirming }()
	case <-ctx.Done():
		refuse(w, &api.ErrorDetail{Code: api.CodeBusy, Message: "too many requests ask about all elections; ask again"})
		return
	}
	elections := make([]api.Election, len(contests))
	var asked sync.WaitGroup
	for i, c := range contests {
		asked.Go(func() {
			e, err := s.confirmed(ctx, c.Election)
			if err != nil {
				giveUp(about(c.Election, err))
			}
			elections[i] = e
		})
	}
	asked.Wait()
	if err := context.Cause(all); err != nil {
		refused(w, err)
		return
	}
	answer(w, api.Elections{Elections: elections})
}

// about adds to an error the election that it is about.
func about(name election.Name, err error) error {
	if r, ok := errors.AsType[*api.ErrorDetail](err); ok {
		return &api.ErrorDetail{Code: r.Code, Message: string(name) + ": " + r.Message}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// confirmed asks a majority of the voters who leads. If they can't be asked, or do not agree,
// the error is an *api.ErrorDetail.
func (s *Server) confirmed(ctx context.Context, name election.Name) (api.Election, error) {
	reply, err := s.Ask(ctx, func(id election.RequestID) election.Input {
		return election.Inquire{Election: name, Request: id}
	})
	switch {
	case err != nil:
		return api.Election{}, err
	case reply.Refusal != nil:
		return api.Election{}, words.Refusal(reply.Refusal)
	}
	if err := s.awaitTerm(ctx, name, reply.Leader.Term); err != nil {
		return api.Election{}, err
	}
	p := s.Picture()
	c, _ := p.contest(name)
	return p.inquired(p.Election(c, s.Clock(), s.Hub.Index(string(name))), reply.Leader), nil
}

// awaitTerm waits until this agent knows the leader that the voters have reported: that takes
// about a heartbeat.
func (s *Server) awaitTerm(ctx context.Context, name election.Name, term election.Term) error {
	c, _ := s.Picture().contest(name)
	if _, named := c.LeaderAt(s.Clock()); term == 0 || named && c.Term >= term {
		return nil
	}
	follower, err := s.Hub.Await(string(name))
	if err != nil {
		return err
	}
	defer follower.Close()
	ctx, cancel := context.WithTimeout(ctx, s.lease()/3)
	defer cancel()
	s.successor(ctx, follower, name, term-1)
	return nil
}

// leads answers load balancers: 200 if this agent leads, else 503. The body is the leader's
// name, if there is a leader.
func (s *Server) leads(w http.ResponseWriter, r *http.Request) {
	of := r.URL.Query().Get("election")
	if of == "" {
		of = string(election.Default)
	}
	name, ok := validName(w, of)
	if !ok {
		return
	}
	p := s.Picture()
	c, _ := p.contest(name)
	e := p.Election(c, s.Clock(), 0)
	status, text := http.StatusServiceUnavailable, ""
	if e.IsLeader {
		status = http.StatusOK
	}
	if e.Leader != nil {
		text = e.Leader.Name + "\n"
	}
	plain(w, status, text)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may have gone
}

// livez shows that the loop still runs, not only that the socket answers.
func (s *Server) livez(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		plain(w, http.StatusServiceUnavailable, "the agent's loop does not answer: "+err.Error()+"\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}

// readyz reports whether this agent knows a leader, or at least a quorum that can
// elect one.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	p := s.Picture()
	c, _ := p.contest(election.Default)
	_, led := c.LeaderAt(s.Clock())
	if q := p.Status.Quorum; !led && q.Enabled && !q.Exists {
		plain(w, http.StatusServiceUnavailable, "no leader is known, and no majority of the voters can be reached\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}
