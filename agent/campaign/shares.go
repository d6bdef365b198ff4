package campaign

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	// Of the candidacies, one in reserving is for root and the agent's own user alone.
	reserving = 10
	// A user may begin namesPerShare new elections at once for each candidacy that it may have:
	// enough to start all of them twice. After that it may begin one more each namesEvery.
	namesPerShare = 2
	namesEvery    = time.Second
	// From pruneFrom users on, those that began nothing lately are forgotten.
	pruneFrom = 256
)

// shares counts what each user has. Only the number of all candidacies bounds those of root
// and of the agent's own user.
type shares struct {
	each  int            // how many candidacies one user may have; 0: any number
	of    map[uint32]int // how many each user has
	fresh map[uint32]allowance
	prune int // at how many entries of fresh the full ones are dropped
}

// allowance is how many new elections a user may still begin.
type allowance struct {
	left int
	at   election.Instant // when it last grew
}

func newShares(each int) shares {
	return shares{each: each, of: map[uint32]int{}, fresh: map[uint32]allowance{}, prune: pruneFrom}
}

func (s *shares) end(uid uint32) {
	if s.of[uid]--; s.of[uid] == 0 {
		delete(s.of, uid)
	}
}

// crowded returns the refusal of a candidacy that exceeds a limit; nil: it exceeds none.
func (r *Registry) crowded(now election.Instant, q Request) *api.ErrorDetail {
	busy := func(format string, args ...any) *api.ErrorDetail {
		return &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf(format, args...)}
	}
	places := r.cfg.MaxCandidacies
	if !q.Own {
		places -= places / reserving
	}
	c := r.races[q.Election]
	switch {
	case r.count >= places:
		return busy("%d programs on this host are candidates, which is the limit: stop some of them", r.count)
	case c != nil && len(c.candidates) >= MaxPerElection:
		return busy("%d programs on this host are candidates in %s, which is the limit: stop some of them", MaxPerElection, q.Election)
	case q.Own || r.shares.each == 0:
		return nil
	case r.shares.of[q.UID] >= r.shares.each:
		return busy("%d programs of user %d are candidates on this host, which is one user's share: stop some of them, or ask an administrator to raise `access.max-candidacies`",
			r.shares.of[q.UID], q.UID)
	case c == nil && !r.shares.begin(now, q.UID):
		return busy("user %d starts new elections faster than one a second, which is the limit: try again in a second", q.UID)
	}
	return nil
}

// begin takes one new election from the user's allowance, and reports whether there was one left.
func (s *shares) begin(now election.Instant, uid uint32) bool {
	most := namesPerShare * s.each
	grown := func(a allowance) allowance {
		if n := int(now.Sub(a.at) / namesEvery); n > 0 {
			a.left, a.at = min(a.left+n, most), a.at.Add(time.Duration(n)*namesEvery)
		}
		return a
	}
	if len(s.fresh) >= s.prune {
		for u, a := range s.fresh {
			if grown(a).left == most {
				delete(s.fresh, u)
			}
		}
		s.prune = max(pruneFrom, 2*len(s.fresh))
	}
	a, known := s.fresh[uid]
	if !known {
		a = allowance{most, now}
	}
	a = grown(a)
	if a.left == 0 {
		s.fresh[uid] = a
		return false
	}
	a.left--
	s.fresh[uid] = a
	return true
}
