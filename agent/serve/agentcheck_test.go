package serve_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/elector"
)

func TestHAProxyIsAnsweredByWhoLeads(t *testing.T) {
	t.Parallel() // the test waits
	a := stand(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve.New(serve.Config{Self: self, Picture: a.picture.Load, Clock: a.clock, Hub: a.hub, Logger: slog.New(slog.DiscardHandler), Commands: a})
	s.AgentCheck(l)
	ask := func(sent string) string {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(c) // if something is unread, the kernel resets the closed connection
		return string(text)
	}
	expect := func(sent, want string) {
		t.Helper()
		if got := ask(sent); got != want {
			t.Errorf("%q: %q, want %q", sent, got, want)
		}
	}
	expect("default\n", "up ready\n")
	expect("", "up ready\n")
	expect("default\r\n", "up ready\n")
	expect("payments\n", "drain\n")
	expect("Payments!\n", "down#not the name of an election\n")
	ask(string(make([]byte, 1<<16)))
	a.now.Add(int64(time.Second)) // the lease has ended, though the picture is old
	expect("default\n", "drain\n")
	a.shows(elector.Following, self, 7, 0)
	status := *a.picture.Load().Status
	picture := *a.picture.Load()
	status.Draining, picture.Status = true, &status
	a.picture.Store(&picture)
	expect("default\n", "maint\n")

	// 2,500 silent connections once made a check wait for 2.9 s. Now the oldest ones are closed when others need
	// their places.
	var silent []net.Conn
	for range 200 {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			silent = append(silent, c)
		}
	}
	expect("default\n", "maint\n")
	answered := 0
	for _, c := range silent {
		if text, _ := io.ReadAll(c); len(text) > 0 {
			answered++
		}
	}
	if answered > len(silent)/2 {
		t.Errorf("%d of %d silent connections were waited for", answered, len(silent))
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
