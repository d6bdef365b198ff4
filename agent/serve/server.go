// Package serve answers the socket API: version 1 on the Unix socket, and a
// read-only part of it on an optional TCP listener.
//
// It guarantees that no answer names a leader whose lease has ended, even while
// the rest of the agent hangs: reads take an immutable picture and compute what
// remains of the lease as they answer. Changes need root, the agent's user or
// its group, as the kernel vouches for the peer of the socket. Bodies, headers,
// connections and followers are bounded; a reader that does not read is cut off.
//
// It does not guarantee that the leader it names still leads when the answer
// arrives: that is what the deadline in it is for. The TCP listener asks nobody
// who they are.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/election"
)

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	writeTimeout  = 10 * time.Second // of one answer, or one line of a watch
	bodyTimeout   = 5 * time.Second
	maxHeader     = 16 << 10
	maxBody       = 64 << 10
	maxConns      = 512
	pingTimeout   = 2 * time.Second
)

// Commands is what the agent can be told to do.
type Commands interface {
	// Ask carries out a command; the refusal, if any, is in the reply.
	Ask(context.Context, func(election.RequestID) election.Input) (election.Reply, error)
	// Ping returns once the agent's loop has shown that it is alive.
	Ping(context.Context) error
	// Leave begins to stop the agent, and returns once everything is handed over.
	Leave(context.Context) error
}

// Config is what a server answers from.
type Config struct {
	Name, Version, Cluster, Algorithm string

	Self    election.Holder
	Lease   time.Duration
	Picture func() *Picture
	Clock   func() election.Instant
	Hub     *watch.Hub
	Metrics http.Handler
	Logger  *slog.Logger
	Commands
	// Preempt and PreemptDelay are the agent's settings of these names, which
	// should be the same on all.
	Preempt      bool
	PreemptDelay time.Duration
	// Owner is who may change things, besides root.
	Owner Owner
}

// Server answers on one or two listeners.
type Server struct {
	Config
	started election.Instant
	ctx     context.Context // ended: long answers end
	cancel  context.CancelFunc
	servers []*http.Server
}

// New returns a server that answers nothing yet.
func New(c Config) *Server {
	s := &Server{Config: c, started: c.Clock()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Socket answers the whole API on a listener of Listen.
func (s *Server) Socket(l net.Listener) { s.serve(l, s.socketRoutes()) }

// TCP answers the read-only part.
func (s *Server) TCP(l net.Listener) { s.serve(l, s.openRoutes()) }

func (s *Server) serve(l net.Listener, h http.Handler) {
	server := &http.Server{
		Handler:           bounded(h),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withPeer,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          log.New(debugWriter{s.Logger}, "", 0),
	}
	s.servers = append(s.servers, server)
	go func() {
		if err := server.Serve(limit(l, maxConns)); !errors.Is(err, http.ErrServerClosed) {
			s.Logger.Error("the listener ended", "addr", l.Addr().String(), "err", err)
		}
	}()
}

// debugWriter keeps what net/http says of broken clients out of the way.
type debugWriter struct{ logger *slog.Logger }

func (w debugWriter) Write(p []byte) (int, error) {
	w.logger.Debug("http", "says", string(p))
	return len(p), nil
}

// Close ends the watches, lets answers under way finish until ctx ends, and
// closes everything. The socket's path is removed with its listener.
func (s *Server) Close(ctx context.Context) error {
	s.Hub.Close()
	var errs error
	for _, server := range s.servers {
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

// bounded limits bodies, the time an answer may take to be taken, and the forms
// a path may have.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !receive(w, r) {
			return
		}
		// Not every writer has deadlines; the ones of connections do.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		if !plainPath(r.URL.Path) {
			nothingThere(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
