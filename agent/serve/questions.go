package serve

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

// Each question to the voters, or to all agents, is work for all of them. So the number of questions is bounded,
// for one user and for all users together. An agent and its voters have time for many more.
const (
	questionsOfUser, burstOfUser = 100, 2 * maxConfirmed // how many a second; how many at once
	questionsOfAll, burstOfAll   = 400, 4 * maxConfirmed
	// overTCP stands for all callers of the TCP listener: no user has this number.
	overTCP = math.MaxUint32
)

// questions counts the questions to the voters.
type questions struct {
	mu  sync.Mutex
	all *door.Pace[struct{}]
	of  *door.Pace[uint32]
}

func newQuestions() *questions {
	return &questions{all: door.NewPace[struct{}](questionsOfAll, burstOfAll), of: door.NewPace[uint32](questionsOfUser, burstOfUser)}
}

// ask counts n questions of a user, or returns why they can't be asked now. A favoured user is
// limited only by what all users together may ask.
func (q *questions) ask(now election.Instant, uid uint32, favoured bool, n int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own := q.of.Left(now, uid); !favoured && own < float64(n) {
		who := "user " + access.UserName(uid)
		if uid == overTCP {
			who = "the callers of --http together"
		}
		return tooOften(fmt.Sprintf("more than %d questions a second for other agents from %s", questionsOfUser, who), (float64(n)-own)/questionsOfUser)
	}
	if all := q.all.Left(now, struct{}{}); !q.all.Take(now, struct{}{}, n) {
		return tooOften(fmt.Sprintf("more than %d questions a second for other agents from all users of this one", questionsOfAll), (float64(n)-all)/questionsOfAll)
	}
	q.of.Take(now, uid, n)
	return nil
}

func tooOften(who string, seconds float64) error {
	wait := time.Duration(math.Ceil(seconds*100)) * 10 * time.Millisecond
	return refusal(api.CodeBusy, fmt.Sprintf("%s: ask again in %s, or what this agent answers by itself (without consistency=quorum)", who, wait))
}

// mayAsk counts n questions of the caller, or returns why they are too many.
func (s *Server) mayAsk(r *http.Request, n int) error {
	p, named := caller(r)
	if !named {
		p.UID = overTCP
	}
	return s.questions.ask(s.Clock(), p.UID, named && s.own(p.UID), n)
}
