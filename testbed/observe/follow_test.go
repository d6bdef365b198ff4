package observe_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/observe"
)

// serve answers at a socket as an agent does: each watch gets one snapshot, and stays open until it
// is closed.
func serve(t *testing.T, socket string, term uint64) *http.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/elections/default/watch", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(api.Change{Type: api.ChangeSnapshot, Term: term, Snapshot: &api.Election{Term: term}})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /v1/elections/default", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(api.Election{Term: term, State: api.StateElecting})
	})
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: mux}
	go s.Serve(listener)
	t.Cleanup(func() { s.Close() })
	return s
}

// next returns the next event that is a T.
func next[T observe.Event](t *testing.T, events <-chan observe.Event) T {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case e, open := <-events:
			if got, ok := e.(T); ok {
				return got
			}
			if !open {
				t.Fatal("the following ended")
			}
		case <-limit:
			t.Fatalf("no %T in 20 s", *new(T))
		}
	}
}

func TestAnAgentThatComesAndGoesIsFollowed(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "do")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan observe.Event, 1024)
	go func() {
		defer close(events)
		observe.Follow(ctx, observe.Options{Sources: []observe.Source{{Agent: "a", Socket: socket}}, Poll: time.Millisecond}, func(e observe.Event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		})
	}()

	first := serve(t, socket, 1)
	if c := next[observe.Changed](t, events); c.Agent != "a" || c.Change.Term != 1 {
		t.Errorf("%+v, want the first life's snapshot", c)
	}
	if p := next[observe.Polled](t, events); p.Election.Term != 1 || p.Received < p.Sent {
		t.Errorf("%+v, want the first life's answer", p)
	}
	first.Close()
	if l := next[observe.Lost](t, events); l.Agent != "a" || l.At == 0 {
		t.Errorf("%+v, want the loss of a", l)
	}
	serve(t, socket, 2)
	if c := next[observe.Changed](t, events); c.Change.Term != 2 {
		t.Errorf("%+v, want the second life's snapshot", c)
	}
	cancel()
	for range events { // it ends
	}
}
