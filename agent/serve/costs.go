package serve

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

const (
	// The agent may spend spentEach µs a second on costly answers for one user, or for all
	// callers of the TCP listener together. After a pause, it may spend spentAtOnce µs at once.
	spentEach, spentAtOnce = 100_000, 300_000
	// keptFor is how long an answer that is the same for all callers is kept. One address gets such
	// answers keptEach times a second, and keptAtOnce times at once after a pause.
	keptFor              = time.Second
	keptEach, keptAtOnce = 10, 12
	// Costly answers that are being read may take unreadTotal bytes together. Those of one user may take
	// unreadEach. Each answer counts as usualAnswer bytes, or as its length if it is longer.
	unreadTotal   = 8 << 20
	unreadEach    = unreadTotal / sharing
	usualAnswer   = 512 << 10
	pieceOfAnswer = 16 << 10 // how much of an answer is sent at once
	// unreadTime is how long a reader of a costly answer may pause when others need the memory.
	unreadTime = time.Second
)

// costs bounds two costs of long answers: the time to make them, since the elections need the same
// processor, and the memory of answers that their callers have not read yet.
type costs struct {
	*Config
	spent *door.Pace[uint32] // bounds the µs spent, by user

	mu     sync.Mutex
	unread *door.Places[uint32] // bounds the bytes that answers take, by user
	open   map[*reading]struct{}
}

// reading is a costly answer that is being made, or read.
type reading struct {
	by    uint32 // the user that asked
	size  int
	moved election.Instant // when some of the answer was last read
	cut   func()
}

// nameOf is the name, for people, of a user or of overTCP.
func nameOf(uid uint32) string {
	if uid == overTCP {
		return "the callers of --http together"
	}
	return "user " + access.UserName(uid)
}

// costly bounds a handler whose answers can be long. The answers are made one after another.
// Answers for root and the agent's user do not wait for the answers of others.
func (c *costs) costly(next http.Handler) http.Handler {
	turns := map[bool]chan struct{}{true: make(chan struct{}, 1), false: make(chan struct{}, 1)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := &reading{by: userOf(r), cut: func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) }}
		defer c.move(u, true)
		made, err := c.make(u, turns[c.own(u.by)], r, next)
		if err != nil {
			w.Header().Set("Connection", "close") // an open connection takes memory too
			refuse(w, err)
			return
		}
		made.begin(w)
		for piece := range slices.Chunk(made.body.Bytes(), pieceOfAnswer) {
			if _, err := w.Write(piece); err != nil { // the caller has gone, or does not read
				return
			}
			c.move(u, false)
		}
	})
}

// make makes an answer, if the user has time and memory left. For root and the agent's user, time is not bounded.
func (c *costs) make(u *reading, turn chan struct{}, r *http.Request, next http.Handler) (*recorder, error) {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	began := c.Clock()
	if !c.own(u.by) && c.spent.Left(began, u.by) <= 0 {
		return nil, refusal(api.CodeBusy, fmt.Sprintf("answers for %s have taken more than %d%% of a processor: ask again in a second, or less often", nameOf(u.by), spentEach/10_000))
	}
	if !c.take(u, usualAnswer) {
		return nil, errUnread
	}
	made := recorded(next, r)
	now := c.Clock()
	c.spent.Spend(now, u.by, int(now.Sub(began).Microseconds())+1)
	if !c.take(u, max(0, min(made.body.Len(), unreadEach)-usualAnswer)) {
		return nil, errUnread
	}
	return made, nil
}

var errUnread = refusal(api.CodeBusy, "this agent holds as many answers as it may that are not read: read them, or ask again in a second")

// take reserves n bytes more for an answer. If the bytes are not free, take cuts off callers that have
// read nothing for unreadTime, and tries again.
func (c *costs) take(u *reading, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u.moved = c.Clock()
	if _, open := c.open[u]; u.size > 0 && !open {
		return false // another take has cut off this answer's caller
	}
	share, own := unreadEach, c.own(u.by)
	if own {
		share = 0
	}
	for range 2 {
		if c.unread.Enter(u.by, n, share, own) == nil {
			u.size += n
			c.open[u] = struct{}{}
			return true
		}
		for other := range c.open {
			if u.moved.Sub(other.moved) >= unreadTime {
				other.cut()
				c.leave(other)
			}
		}
	}
	return false
}

// move records that some of an answer, or all of it, was read.
func (c *costs) move(u *reading, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.moved = c.Clock(); all {
		c.leave(u)
	}
}

func (c *costs) leave(u *reading) {
	if _, there := c.open[u]; there {
		delete(c.open, u)
		c.unread.Leave(u.by, u.size)
	}
}

// recorded makes a handler answer into memory, and returns that answer.
func recorded(h http.Handler, r *http.Request) *recorder {
	out := &recorder{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(out, r)
	return out
}

// begin sends what comes before the body: the status and the headers.
func (r *recorder) begin(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	maps.Copy(w.Header(), r.header)
	w.Header().Set("Content-Length", strconv.Itoa(r.body.Len()))
	w.WriteHeader(r.status)
}

// kept is an answer that is the same for all callers. It is made for one caller while the others wait. It is kept
// for a second, or until a lease that it shows ends, so it names no leader whose lease has ended.
type kept struct {
	*Config
	next  http.Handler
	given *door.Pace[string] // bounds how often each address gets the answer

	mu    sync.Mutex // held while the answer is made
	made  *recorder
	until election.Instant
}

func (c *Config) kept(next http.Handler) *kept {
	return &kept{Config: c, next: next, given: door.NewPace[string](keptEach, keptAtOnce)}
}

func (k *kept) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if by := socket.AddressOf(placeOf(r)).Name; !k.given.Take(k.Clock(), by, 1) {
		refuse(w, refusal(api.CodeBusy, fmt.Sprintf("%s asks for this more than %d times a second: it changes once a second", by, keptEach)))
		return
	}
	made := k.newest()
	made.begin(w)
	_, _ = w.Write(made.body.Bytes()) // the caller may have gone
}

func (k *kept) newest() *recorder {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Clock()
	if k.made != nil && now < k.until {
		return k.made
	}
	before := k.Picture()                                                                                    // the answer shows this picture, or a newer one
	k.made = recorded(k.next, &http.Request{Method: http.MethodGet, URL: &url.URL{}, Header: http.Header{}}) // the request has no caller, since all callers get this answer
	k.until = now.Add(keptFor)
	for _, c := range before.Status.Contests {
		if _, led := c.LeaderAt(now); led {
			k.until = min(k.until, c.ValidUntil)
		}
	}
	return k.made
}
