package serve

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// Each question to the voters, or to all agents, is work for all of them. So the number of questions is bounded,
// for one user and for all users together. An agent and its voters have time for many more.
const (
	questionsOfUser, burstOfUser = 100, 2 * maxConfirmed // how many a second; how many at once
	questionsOfAll, burstOfAll   = 400, 4 * maxConfirmed
	// maxAskers is how many users are remembered at once.
	maxAskers = 1024
	// overTCP stands for all callers of the TCP listener: no user has this number.
	overTCP = math.MaxUint32
)

// questions counts the questions to the voters.
type questions struct {
	mu  sync.Mutex
	all bucket
	of  map[uint32]*bucket // users that have asked lately
}

// bucket holds the questions that may still be asked. It fills with time.
type bucket struct {
	left float64
	at   election.Instant
}

func newQuestions(now election.Instant) *questions {
	return &questions{all: bucket{burstOfAll, now}, of: map[uint32]*bucket{}}
}

// fill adds what the time since the last call has brought.
func (b *bucket) fill(now election.Instant, rate, burst float64) {
	b.left = min(burst, b.left+rate*max(0, now.Sub(b.at)).Seconds())
	b.at = now
}

// ask counts n questions of a user, or returns why they can't be asked now. A favoured user is
// limited only by what all users together may ask.
func (q *questions) ask(now election.Instant, uid uint32, favoured bool, n int) *api.ErrorDetail {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all.fill(now, questionsOfAll, burstOfAll)
	own := q.of[uid]
	if own == nil {
		q.forget(now)
		own = &bucket{burstOfUser, now}
		q.of[uid] = own
	}
	own.fill(now, questionsOfUser, burstOfUser)
	switch {
	case !favoured && own.left < float64(n):
		who := "user " + userName(uid)
		if uid == overTCP {
			who = "the callers of --http together"
		}
		return tooOften(fmt.Sprintf("more than %d questions a second for other agents from %s", questionsOfUser, who),
			(float64(n)-own.left)/questionsOfUser)
	case q.all.left < float64(n):
		return tooOften(fmt.Sprintf("more than %d questions a second for other agents from all users of this one", questionsOfAll),
			(float64(n)-q.all.left)/questionsOfAll)
	}
	q.all.left -= float64(n)
	own.left = max(0, own.left-float64(n))
	return nil
}

// forget drops the users whose buckets are full again, and all users if there are too many.
func (q *questions) forget(now election.Instant) {
	if len(q.of) < maxAskers {
		return
	}
	for uid, b := range q.of {
		if b.fill(now, questionsOfUser, burstOfUser); b.left >= burstOfUser {
			delete(q.of, uid)
		}
	}
	if len(q.of) >= maxAskers {
		clear(q.of) // the bucket of all users bounds them still
	}
}

func tooOften(who string, seconds float64) *api.ErrorDetail {
	wait := time.Duration(math.Ceil(seconds*100)) * 10 * time.Millisecond
	return &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf(
		"%s: ask again in %s, or what this agent answers by itself (without consistency=quorum)", who, wait)}
}

// mayAsk counts n questions of the caller. If they are too many, it answers and returns false.
func (s *Server) mayAsk(w http.ResponseWriter, r *http.Request, n int) bool {
	p, named := caller(r)
	if !named {
		p.UID = overTCP
	}
	if full := s.questions.ask(s.Clock(), p.UID, named && s.own(p.UID), n); full != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, full)
		return false
	}
	return true
}
