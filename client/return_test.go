package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/client"
)

// A keeper starts a dead agent again at once. A read that comes meanwhile is answered by the next process.
func TestAReadWaitsForTheAgentsNextProcess(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	deadSocket(t, path)
	listeners := make(chan net.Listener)
	server := &http.Server{Handler: answer("GET /v1/agent", `{"name":"a"}`)}
	done := make(chan struct{})
	go func() { // outside the bubble: a goroutine that waits for a connection would stop the bubble's clock
		defer close(done)
		server.Serve(<-listeners)
	}()
	synctest.Test(t, func(t *testing.T) {
		c := client.New(path)
		defer c.Close()
		asked := make(chan error, 1)
		go func() {
			a, err := c.Agent(t.Context())
			if err == nil && a.Name != "a" {
				err = errors.New("not the agent's answer")
			}
			asked <- err
		}()
		synctest.Wait() // the first attempt was refused
		os.Remove(path)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		listeners <- listener
		if err := <-asked; err != nil {
			t.Error(err)
		}
	})
	server.Close()
	<-done
}

// The agent dies while it answers, or before it answers.
func TestAReadWhoseConnectionEndsIsMadeAgain(t *testing.T) {
	for name, start := range map[string]string{"before the answer": "", "within the answer": `{"na`} {
		var asked atomic.Int32
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 3 {
				io.WriteString(w, `{"name":"a"}`)
				return
			}
			io.WriteString(w, start)
			if start != "" {
				w.(http.Flusher).Flush()
			}
			panic(http.ErrAbortHandler)
		}))
		if a, err := c.Agent(t.Context()); err != nil || a.Name != "a" || asked.Load() != 3 {
			t.Errorf("%s: %+v, %v after %d requests", name, a, err, asked.Load())
		}
	}
}

// The agent may have carried out the change.
func TestAChangeIsNotMadeAgain(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	if _, err := c.Resign(t.Context(), "default"); err == nil || asked.Load() != 1 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
}

func TestHowLongACallWaitsForTheAgentsNextProcess(t *testing.T) {
	read := func(ctx context.Context, c *client.Client) error { _, err := c.Agent(ctx); return err }
	change := func(ctx context.Context, c *client.Client) error { _, err := c.Leave(ctx); return err }
	none := func(*testing.T, string) {}
	file := func(t *testing.T, path string) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		make       func(*testing.T, string)
		call       func(context.Context, *client.Client) error
		limit, end time.Duration // the context's limit, and when the call ends; limit 0: the context is cancelled
		want       string
	}{
		"nobody listens":            {deadSocket, read, time.Minute, time.Second, "no agent listens at"},
		"the context ends sooner":   {deadSocket, read, 99 * time.Millisecond, 99 * time.Millisecond, "no agent listens at"},
		"no socket":                 {none, read, time.Minute, 0, "no socket exists at"},
		"not a socket":              {file, read, time.Minute, 0, "is not a socket"},
		"a change where nobody is":  {deadSocket, change, time.Minute, 0, "no agent listens at"},
		"the context was cancelled": {deadSocket, read, 0, 10 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(shortDir(t), "s")
			test.make(t, path)
			synctest.Test(t, func(t *testing.T) {
				c, began := client.New(path), time.Now()
				defer c.Close()
				ctx, cancel := context.WithCancel(t.Context())
				if test.limit > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), test.limit)
				} else {
					time.AfterFunc(test.end, cancel)
				}
				defer cancel()
				err := test.call(ctx, c)
				if took := time.Since(began); took < test.end || took > test.end+20*time.Millisecond {
					t.Errorf("ended after %v, want %v", took, test.end)
				}
				if test.limit == 0 {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
					return
				}
				checkUnreachable(t, err, test.want, "")
			})
		})
	}
}
