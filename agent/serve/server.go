// Package serve answers the socket API: version 1 on the Unix socket, and a read-only part of it on an
// optional TCP listener.
//
// It guarantees that no answer names a leader whose lease has ended, even while the rest of the agent hangs.
// Reads use an immutable picture, and compute what remains of the lease when they answer. The status page, and
// metrics over TCP, may be a second old. A change needs a right. Package access decides who has the right, by
// the process that the kernel names as the socket's peer. Bodies, headers, connections and watches are bounded,
// and so are the time and the memory that costly answers take. A client that does not read is cut off.
//
// It does not guarantee that the leader which an answer names still leads when the answer arrives; for that,
// the answer has a deadline. The TCP listener does not check its callers.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
	"github.com/doyen-election/doyen/membership"
)

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 10 * time.Second // how long a connection to the socket may rest between two calls
	idleTCP       = 5 * time.Second
	writeTimeout  = 10 * time.Second // how long an answer, or one line of a watch, may take to write
	bodyTimeout   = 5 * time.Second
	maxHeader     = 16 << 10
	maxBody       = 64 << 10
	pingTimeout   = 2 * time.Second
)

// Commands is what the agent can be asked to do.
type Commands interface {
	// Ask carries out a command. If it is refused, the refusal is in the reply.
	Ask(context.Context, func(election.RequestID) election.Input) (election.Reply, error)
	// Ping returns once the agent's loop has shown that it is alive.
	Ping(context.Context) error
	// Leave starts to stop the agent, and returns once everything is handed over.
	Leave(context.Context) error
	// Restart checks whether the agent could start again; err is why not. An empty handsOver means that the
	// next process can go on leading. Otherwise it is the reason why the agent has to hand over first. After
	// a nil error, call Restarts with that handsOver: it hands over if need be, and ends this process.
	Restart(context.Context) (handsOver string, err error)
	Restarts(handsOver string)
	// Reload reads the configuration again.
	Reload() api.Reload
	// Lasts reports whether the next process would go on leading if this one were killed, and
	// whether a service manager started this one.
	Lasts() (record, service bool)
}

// Config is what a server answers from.
type Config struct {
	Name, Version, Cluster, Algorithm string

	Self             election.Holder
	Run              election.RunID
	Life             uint64 // the number of this process run in its lineage
	Keeper           bool   // a keeper would start the next process run
	Heartbeat, Lease time.Duration
	Picture          func() *Picture
	Clock            func() election.Instant
	Hub              *watch.Hub
	Keyring          Keyring
	Campaigns        Campaigns
	// History returns the newest transitions of an election, no more than limit, the newest last.
	// An empty election stands for all elections.
	History func(election string, limit int) []api.Transition
	// Enter adds a command to the history, and returns whether the history has a new entry.
	Enter func(api.Transition) bool
	// KeepDrain saves, for the next starts, whether the agent is drained.
	KeepDrain func(on bool) error
	Metrics   http.Handler
	Logger    *slog.Logger
	Commands
	// Preemption returns the agent's settings preempt and preempt-delay, which should be the same
	// on all agents.
	Preemption func() (preempt bool, delay time.Duration)
	// LogLevel sets the level of the log for a while, and returns the level that it has after that.
	LogLevel func(level string, limit time.Duration) (then string)
	// Debug has the parts of a bug report that only the agent knows, by name. They show no cluster key.
	Debug map[string]func() []byte
	// Pings asks another agent for an answer over UDP, and returns why none came.
	Pings func(to membership.Member) error
	// Other makes calls at other agents; nil: every call is carried out here.
	Other
	// Access decides who may change what; nil: nobody may change anything.
	Access *access.Policy
	// Files is how many files the server may have open; 0: any number.
	Files int
	// Hosts are the host names that requests to the TCP listener may use, besides IP addresses
	// and localhost.
	Hosts []string
	// ActUser may be a companion besides root and the agent's user; nil: nobody else may.
	ActUser *uint32
	// HTTPAPI makes the TCP listener answer GET /v1/… too.
	HTTPAPI bool
}

// Server answers on its listeners.
type Server struct {
	Config
	started   election.Instant
	ctx       context.Context // when ctx ends, long answers end
	cancel    context.CancelFunc
	mu        sync.Mutex
	servers   []*http.Server // guarded by mu
	questions *questions
	// confirming is held by the one call at a time that asks about all elections.
	confirming  chan struct{}
	others      others
	reports     reports
	watching    watching
	candidacies candidacies
	keyChanges  keyChanges
	costs       *costs
	forwarding  http.Handler // answers calls that other agents forward
}

// New returns a server that answers nothing yet.
func New(c Config) *Server {
	s := &Server{Config: c, started: c.Clock(), confirming: make(chan struct{}, 1), questions: newQuestions()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.others = others{&s.Config}
	watches := Bound(maxWatches, c.Files)
	s.watching = watching{&s.Config, door.NewPlaces[uint32](watches, watches/reserving)}
	s.candidacies = candidacies{Config: &s.Config, ctx: s.ctx, streams: newStreams(), attention: attentionFor(c.Lease), otherTime: otherTime}
	s.keyChanges = keyChanges{Config: &s.Config, ctx: s.ctx, others: s.others}
	s.costs = &costs{Config: &s.Config, spent: door.NewPace[uint32](spentEach, spentAtOnce),
		unread: door.NewPlaces[uint32](unreadTotal, unreadTotal/reserving), open: map[*reading]struct{}{}}
	s.forwarding = bounded(s.forwardRoutes())
	return s
}

// Socket answers the whole API, on a listener that socket.Listen made. Each user has a share of the
// places. Some places are only for root and the agent's user, so that these can always connect.
func (s *Server) Socket(l net.Listener) {
	s.serve(s.socketPlaces(l, maxPlain+maxStreams), s.socketRoutes(), idleTimeout)
}

// ReadSocket answers what changes nothing, on another listener that socket.Listen made. changes is
// the path of the socket that accepts changes, which refusals name.
func (s *Server) ReadSocket(l net.Listener, changes string) {
	s.serve(s.socketPlaces(l, maxReads), readOnly(s.socketRoutes(), true,
		"this socket only answers questions, and changes nothing: use the agent's own socket, --socket "+changes), idleTimeout)
}

// TCP answers the read-only part of the API, and the status page, until stop is called. stop closes
// the listener at once, and gives answers under way a second.
func (s *Server) TCP(l net.Listener) (stop func()) {
	server := s.serve(s.tcpPlaces(l), hostNames(s.Hosts).only(s.pageRoutes()), idleTCP)
	return func() {
		now, cancel := context.WithCancel(s.ctx)
		cancel()
		if server.Shutdown(now) != nil {
			time.AfterFunc(time.Second, func() { _ = server.Close() })
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.servers = slices.DeleteFunc(s.servers, func(o *http.Server) bool { return o == server })
	}
}

func (s *Server) serve(l net.Listener, h http.Handler, idle time.Duration) *http.Server {
	server := &http.Server{
		Handler:           bounded(h),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idle,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       s.withPlace,
		ConnState:         socket.Follow,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug), // only errors of broken clients
	}
	s.mu.Lock()
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.Logger.Error("the listener ended", "addr", l.Addr().String(), "err", err)
		}
	}()
	return server
}

// Close ends the watches and campaigns, lets answers under way finish until ctx ends, and
// closes everything. The socket's path is removed with its listener.
func (s *Server) Close(ctx context.Context) error {
	s.Hub.Close()
	errs := s.candidacies.streams.close(ctx)
	s.mu.Lock()
	servers := slices.Clone(s.servers)
	s.mu.Unlock()
	for _, server := range servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = errors.Join(errs, err, server.Close())
		}
	}
	s.cancel()
	if errs != nil {
		return fmt.Errorf("close server: %w", errs)
	}
	return nil
}

// bounded limits the size of bodies, the time that a client may take to read an answer, and
// the forms that a path may have.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !receive(w, r) {
			return
		}
		// Not every writer has deadlines, but those of connections do. A response controller would
		// find the same method, and cost an allocation each time.
		if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
			_ = d.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
		if !plainPath(r.URL.Path) {
			nothingThere(w, r)
			return
		}
		if k := placeOf(r); k != nil {
			k.Turn(true)
		}
		next.ServeHTTP(w, r)
	})
}
