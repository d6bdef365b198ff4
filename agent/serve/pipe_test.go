package serve_test

import (
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/election"
)

// pipes is a listener in memory, for a bubble of package synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// idle returns a server that shows nothing, and a listener in memory for it.
func idle() (*serve.Server, *pipes) {
	return serve.New(serve.Config{
		Clock: func() election.Instant { return 0 }, Hub: watch.NewHub(0),
		Metrics: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler),
	}), &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
