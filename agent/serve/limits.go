package serve

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

// The bounds of a server. If the system allows fewer files than allFiles, they are reduced (Bound).
const (
	maxConns     = 64   // all connections to the TCP listener
	maxOfAddress = 16   // connections from one address to the TCP listener
	opensEach    = 100  // connects a second from one address to the TCP listener
	opensAtOnce  = 200  // connects from one address at once, after a pause
	maxPlain     = 512  // connections to the socket for plain calls
	maxReads     = 512  // connections to the read-only socket
	maxStreams   = 2048 // connections to the socket for campaigns and watches: more than maxWatches and actors.MaxCandidacies together
	maxWatches   = 1024
	maxChecks    = 64 // connections for agent checks
	maxChecksOf  = 16 // connections for agent checks from one address
	// A user may have 1/sharing of the socket's places.
	sharing = 4
	// 1/reserving of the socket's places is for root and the agent's user alone.
	reserving = 10
	// allFiles is how many files the connections need, without agent checks, and the pidfds of the
	// programs that campaign.
	allFiles = maxConns + maxPlain + maxReads + maxStreams + actors.MaxCandidacies
)

// Bound reduces n, a number of connections, if all connections together need more files than the agent may have
// open. files is that limit; 0: any number.
func Bound(n, files int) int {
	if files <= 0 || files >= allFiles {
		return n
	}
	return max(n*files/allFiles, 8)
}

// socketPlaces bounds the connections of a socket, by user.
func (s *Server) socketPlaces(l net.Listener, most int) *socket.Places {
	total := Bound(most, s.Files)
	return socket.NewPlaces(l, total, total/sharing, total/reserving, func(k *socket.Conn) socket.Origin {
		if !k.Vouched {
			return socket.Origin{Name: "unknown users"}
		}
		return socket.Origin{Name: "user " + strconv.FormatUint(uint64(k.Peer.UID), 10), Favoured: s.own(k.Peer.UID)}
	})
}

// tcpPlaces bounds the connections of the TCP listener by address.
func (s *Server) tcpPlaces(l net.Listener) *socket.Places {
	total := Bound(maxConns, s.Files)
	p := socket.NewPlaces(l, total, min(maxOfAddress, total/2), 0, socket.AddressOf)
	p.Brief, p.Opened = true, door.NewPace[string](opensEach, opensAtOnce)
	return p
}

// own reports whether the user is root or the agent's user.
func (c *Config) own(uid uint32) bool { return c.Access != nil && c.Access.Own(uid) }

// begin counts one more watch of the user, or returns why the user may have no more.
func (h watching) begin(uid uint32, favoured bool) error {
	share := Bound(maxWatches, h.Files) / sharing
	if favoured {
		share = 0
	}
	switch h.watches.Enter(uid, 1, share, favoured) {
	case nil:
		return nil
	case door.ErrShare:
		return refusal(api.CodeBusy, "user "+access.UserName(uid)+" has as many watches of this agent as one user may: end some of them")
	}
	return refusal(api.CodeBusy, "this agent has as many watches as it serves: end some of them")
}

// Each question to the voters, or to all agents, is work for each of them. So the number of questions is
// bounded, for one user and for all users together, well below what agents have time for.
const (
	questionsOfUser, burstOfUser = 100, 2 * maxConfirmed // how many questions a second; how many at once
	questionsOfAll, burstOfAll   = 400, 4 * maxConfirmed
	agentsOfQuestion             = 8 // a question to all agents counts once, and once more for each group of so many members
	// overTCP is the number for all callers that the kernel does not name. No user has this number.
	overTCP = math.MaxUint32
)

// questions counts the questions to other agents: of all users together, and of each user.
type questions struct {
	all *door.Pace[struct{}]
	of  *door.Pace[uint32]
}

func newQuestions() *questions {
	return &questions{all: door.NewPace[struct{}](questionsOfAll, burstOfAll), of: door.NewPace[uint32](questionsOfUser, burstOfUser)}
}

// ask counts n questions of a user, or returns why they can't be asked now. A favoured user is
// limited only by what all users together may ask.
func (q *questions) ask(now election.Instant, uid uint32, favoured bool, n int) error {
	if !q.of.Take(now, uid, n) && !favoured {
		return tooOften(fmt.Sprintf("more than %d questions a second for other agents from %s", questionsOfUser, nameOf(uid)), (float64(n)-q.of.Left(now, uid))/questionsOfUser)
	}
	if !q.all.Take(now, struct{}{}, n) {
		return tooOften(fmt.Sprintf("more than %d questions a second for other agents from all users of this one", questionsOfAll), (float64(n)-q.all.Left(now, struct{}{}))/questionsOfAll)
	}
	return nil
}

func tooOften(who string, seconds float64) error {
	wait := time.Duration(math.Ceil(seconds*100)) * 10 * time.Millisecond
	return refusal(api.CodeBusy, fmt.Sprintf("%s: ask again in %s, or what this agent answers by itself (without consistency=quorum)", who, wait))
}

// questionsTo is how many questions one question to all agents counts as.
func questionsTo(p *Picture) int { return min(1+len(p.View.Members)/agentsOfQuestion, burstOfUser) }

// mayAsk counts n questions of the caller, or returns why they are too many.
func (s *Server) mayAsk(r *http.Request, n int) error {
	uid := userOf(r)
	return s.questions.ask(s.Clock(), uid, s.own(uid), n)
}
