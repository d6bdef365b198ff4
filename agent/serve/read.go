package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

func (s *Server) agent(*http.Request) (any, error) { return s.describe(s.Picture()), nil }

// describe returns the answer to GET /v1/agent.
func (s *Server) describe(p *Picture) api.Agent {
	preempt, delay := s.Preemption()
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

func (s *Server) members(*http.Request) (any, error) {
	return api.Members{Members: s.Picture().Members()}, nil
}

func (s *Server) elections(r *http.Request) (any, error) {
	quorum, err := consistency(r)
	if quorum {
		return s.allConfirmed(r)
	}
	return api.Elections{Elections: s.Picture().Elections(s.Clock(), s.Hub.Index)}, err
}

func (s *Server) election(r *http.Request) (any, error) {
	name, err := name(r)
	if err != nil {
		return nil, err
	}
	p := s.Picture()
	c, exists := p.contest(name)
	if !exists {
		return nil, unknownElection(name)
	}
	quorum, err := consistency(r)
	if quorum {
		err = s.mayAsk(r, 1)
	}
	if err != nil || !quorum {
		return p.Election(c, s.Clock(), s.Hub.Index(string(name))), err
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*s.lease())
	defer cancel()
	return s.confirmed(ctx, name)
}

// consistency reports whether the request wants a majority to be asked first.
func consistency(r *http.Request) (quorum bool, err error) {
	if r.URL.RawQuery == "" {
		return false, nil
	}
	switch r.URL.Query().Get("consistency") {
	case "":
		return false, nil
	case "quorum":
		return true, nil
	}
	return false, badRequest("consistency must be quorum, or be omitted")
}

// maxConfirmed bounds the elections that one call asks a majority about: each is a separate
// question, and the elector accepts only so many at once.
const maxConfirmed = 32

// allConfirmed asks a majority about each election before it answers. Only one call at a time
// may do so, which leaves room for questions about single elections.
func (s *Server) allConfirmed(r *http.Request) (any, error) {
	contests := s.Picture().contests()
	if len(contests) > maxConfirmed {
		return nil, badRequest(fmt.Sprintf(
			"consistency=quorum works for at most %d elections at once, and there are %d: ask for each by its name", maxConfirmed, len(contests)))
	}
	if err := s.mayAsk(r, len(contests)); err != nil {
		return nil, err
	}
	all, giveUp := context.WithCancelCause(r.Context())
	defer giveUp(nil)
	ctx, cancel := context.WithTimeout(all, 2*s.lease())
	defer cancel()
	select {
	case s.confirming <- struct{}{}:
		defer func() { <-s.confirming }()
	case <-ctx.Done():
		return nil, refusal(api.CodeBusy, "too many requests ask about all elections; ask again")
	}
	elections := together(contests, func(c *elector.ContestStatus) api.Election {
		e, err := s.confirmed(ctx, c.Election)
		if err != nil {
			giveUp(about(c.Election, err))
		}
		return e
	})
	return api.Elections{Elections: elections}, context.Cause(all)
}

// about adds to an error the election that it is about.
func about(name election.Name, err error) error {
	if r, ok := errors.AsType[*api.ErrorDetail](err); ok {
		return &api.ErrorDetail{Code: r.Code, Message: string(name) + ": " + r.Message}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// confirmed asks a majority of the voters who leads. If the voters can't be asked, or do not agree,
// the error is an *api.ErrorDetail.
func (s *Server) confirmed(ctx context.Context, name election.Name) (api.Election, error) {
	reply, err := s.ask(ctx, func(id election.RequestID) election.Input { return election.Inquire{Election: name, Request: id} })
	if err != nil {
		return api.Election{}, err
	}
	if term := reply.Leader.Term; term > 0 { // this agent learns of that leader within about a heartbeat
		soon, cancel := context.WithTimeout(ctx, s.lease()/3)
		defer cancel()
		s.successor(soon, name, term-1)
	}
	p := s.Picture()
	c, _ := p.contest(name)
	return p.inquired(p.Election(c, s.Clock(), s.Hub.Index(string(name))), reply.Leader), nil
}

const defaultHistory = 100 // how many transitions an answer has by default

// history lists the newest changes. For an election that never had a candidate, the list is empty.
func (s *Server) history(r *http.Request) (any, error) {
	query := r.URL.Query()
	of, limit := query.Get("election"), defaultHistory
	if of != "" {
		if _, err := validName(of); err != nil {
			return nil, err
		}
	}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > history.MaxListed {
			return nil, badRequest("limit must be an integer from 1 to " + strconv.Itoa(history.MaxListed))
		}
		limit = n
	}
	return api.History{History: s.History(of, limit)}, nil
}
