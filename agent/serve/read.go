package serve

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

func (s *Server) agent(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.describe(s.Picture()))
}

// describe says what there is to say of this agent.
func (s *Server) describe(p *Picture) api.Agent {
	return api.Agent{
		Name: s.Name, ID: string(s.Self.Peer), BootID: s.Self.Boot.String(), Version: s.Version,
		Cluster: s.Cluster, Algorithm: s.Algorithm, PID: os.Getpid(),
		UptimeMS: s.Clock().Sub(s.started).Milliseconds(),
		Draining: p.Status.Draining, Quorum: p.Quorum(), Warnings: p.Warnings,
		HeartbeatMS: s.Heartbeat.Milliseconds(), LeaseMS: s.Lease.Milliseconds(),
		Preempt: s.Preempt, PreemptDelayMS: s.PreemptDelay.Milliseconds(),
	}
}

func (s *Server) members(w http.ResponseWriter, _ *http.Request) {
	answer(w, api.Members{Members: s.Picture().Members()})
}

func (s *Server) elections(w http.ResponseWriter, _ *http.Request) {
	b := s.answers.buffer()
	*b = s.Picture().appendElections(*b, s.Clock(), s.Hub.Index)
	s.answers.send(w, b)
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
	consistency := ""
	if r.URL.RawQuery != "" {
		consistency = r.URL.Query().Get("consistency")
	}
	switch consistency {
	case "":
		b := s.answers.buffer()
		*b = p.appendElection(*b, &c, s.Clock(), s.Hub.Index(string(name)))
		s.answers.send(w, b)
	case "quorum":
		s.confirmed(w, r, name)
	default:
		fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: "consistency is quorum, or left out"})
	}
}

// confirmed asks a majority of the voters before it answers.
func (s *Server) confirmed(w http.ResponseWriter, r *http.Request, name election.Name) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*s.Lease)
	defer cancel()
	follower, err := s.Hub.Follow(string(name), 0, false)
	if err != nil {
		unanswered(w, err)
		return
	}
	defer follower.Close()
	reply, err := s.Ask(ctx, func(id election.RequestID) election.Input {
		return election.Inquire{Election: name, Request: id}
	})
	switch {
	case err != nil:
		unanswered(w, err)
	case reply.Refusal != nil:
		refuse(w, reply.Refusal)
	default:
		if reply.Leader.Term > 0 { // a leader this agent has not heard yet is heard within a heartbeat
			ctx, cancel := context.WithTimeout(ctx, s.Lease/3)
			defer cancel()
			s.successor(ctx, follower, name, reply.Leader.Term-1)
		}
		p := s.Picture()
		c, _ := p.contest(name)
		answer(w, p.inquired(p.Election(c, s.Clock(), s.Hub.Index(string(name))), reply.Leader))
	}
}

// leads answers load balancers: 200 if this agent leads, else 503, with the
// leader's name, if there is one, as the body.
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
	_, _ = io.WriteString(w, text) // whoever asked may be gone
}

// livez shows that the loop turns, not only that the socket answers.
func (s *Server) livez(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if err := s.Ping(ctx); err != nil {
		plain(w, http.StatusServiceUnavailable, "the loop does not answer: "+err.Error()+"\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}

// readyz says whether this agent has something to say: a leader, or at least a
// quorum that can make one.
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
