package actors

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

const (
	// Every tenth candidacy (one in reserving) is reserved for root and the agent's own user.
	reserving = 10
	// A user may start, at once, namesPerShare new elections for each candidacy that it may have:
	// enough to start each candidacy twice. After that it may start one more in each namesEvery.
	namesPerShare = 2
	namesEvery    = time.Second
)

// shares counts the candidacies of each user. Those of root and of the agent's own user are bounded
// only by the number of all candidacies.
type shares struct {
	each  int                // how many candidacies one user may have; 0: any number
	of    map[uint32]int     // how many candidacies each user has
	fresh *door.Pace[uint32] // bounds how fast each user may start new elections
}

func newShares(each int) shares {
	return shares{each: each, of: map[uint32]int{}, fresh: door.NewPace[uint32](1/namesEvery.Seconds(), namesPerShare*each)}
}

func (s *shares) end(uid uint32) {
	if s.of[uid]--; s.of[uid] == 0 {
		delete(s.of, uid)
	}
}

// crowded returns a refusal if a candidacy exceeds a limit; nil: it exceeds none.
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
	case int(r.Counters.Candidacies.Load()) >= places:
		return busy("%d programs on this host are candidates, which is the limit: stop some of them", r.Counters.Candidacies.Load())
	case c != nil && len(c.candidates) >= MaxPerElection:
		return busy("%d programs on this host are candidates in %s, which is the limit: stop some of them", MaxPerElection, q.Election)
	case q.Own || r.shares.each == 0:
		return nil
	case r.shares.of[q.UID] >= r.shares.each:
		return busy("%d programs of user %d are candidates on this host, which is one user's share: stop some of them, or ask an administrator to raise `access.max-candidacies`",
			r.shares.of[q.UID], q.UID)
	case c == nil && !r.shares.fresh.Take(now, q.UID, 1):
		return busy("user %d starts new elections faster than one a second, which is the limit: try again in a second", q.UID)
	}
	return nil
}
