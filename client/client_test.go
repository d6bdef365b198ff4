package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// shortDir returns a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve answers at a socket until the test ends, and returns its client.
func serve(t *testing.T, handler http.Handler) *client.Client {
	t.Helper()
	path := filepath.Join(shortDir(t), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	c := client.New(path)
	t.Cleanup(func() {
		c.Close()
		server.Close()
		<-done
	})
	return c
}

// answer is a handler that gives one body to one method and path, and 500 to
// everything else.
func answer(call, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Method + " " + r.URL.RequestURI()
		if got != call {
			http.Error(w, "unexpected call "+got, http.StatusInternalServerError)
			return
		}
		io.WriteString(w, body)
	})
}

func TestEachCallAsksItsPathAndDecodesTheAnswer(t *testing.T) {
	tests := []struct {
		call, body string
		ask        func(context.Context, *client.Client) (any, error)
		want       any
	}{
		{"GET /v1/agent", `{"name":"a","pid":7,"quorum":{"enabled":true,"state":"edge"},"new_field":1}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Agent(ctx) },
			api.Agent{Name: "a", PID: 7, Quorum: api.Quorum{Enabled: true, State: api.QuorumEdge}}},
		{"GET /v1/members", `{"members":[{"name":"b","status":"suspect"}]}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Members(ctx) },
			[]api.Member{{Name: "b", Status: api.StatusSuspect}}},
		{"GET /v1/elections", `{"elections":[{"election":"default","term":3}]}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Elections(ctx) },
			[]api.Election{{Election: "default", Term: 3}}},
		{"GET /v1/elections/payments", `{"election":"payments","leader":{"name":"c"}}`,
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.Election(ctx, "payments", client.ElectionOptions{})
			}, api.Election{Election: "payments", Leader: &api.Leader{Name: "c"}}},
		{"GET /v1/elections/payments?consistency=quorum", `{"authority":"quorum"}`,
			func(ctx context.Context, c *client.Client) (any, error) {
				return c.Election(ctx, "payments", client.ElectionOptions{Quorum: true})
			}, api.Election{Authority: api.AuthorityQuorum}},
		{"POST /v1/elections/a%2Fb/resign", `{"done":true}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Resign(ctx, "a/b") },
			api.Outcome{Done: true}},
		{"POST /v1/elections/default/transfer", `{"done":true,"term":9,"waited_ms":4}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Transfer(ctx, "default", "b") },
			api.Outcome{Done: true, Term: 9, Waited: 4}},
		{"POST /v1/drain", `{"done":true}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Drain(ctx, true) },
			api.Outcome{Done: true}},
		{"POST /v1/leave", `{"done":true}`,
			func(ctx context.Context, c *client.Client) (any, error) { return c.Leave(ctx) },
			api.Outcome{Done: true}},
	}
	for _, test := range tests {
		t.Run(test.call, func(t *testing.T) {
			c := serve(t, answer(test.call, test.body))
			var raw string
			c.Raw = func(body []byte) { raw = string(body) }
			got, err := test.ask(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := encode(t, got), encode(t, test.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
			if raw != test.body {
				t.Errorf("raw body %q, want it as it came: %q", raw, test.body)
			}
		})
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRequestsCarryTheirBody(t *testing.T) {
	bodies := make(chan string, 2)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, _ := io.ReadAll(r.Body)
		bodies <- r.Header.Get("Content-Type") + " " + string(in)
		io.WriteString(w, `{"done":true}`)
	}))
	if _, err := c.Transfer(t.Context(), "default", "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Drain(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`application/json {"to":"b"}`, `application/json {"on":false}`} {
		if got := <-bodies; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	}
}

func TestRefusalsAreAPIErrors(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		want       client.APIError
	}{
		{"of the agent", `{"error":{"code":"not_leader","message":"b leads"}}`, 409,
			client.APIError{Status: 409, Code: api.CodeNotLeader, Message: "b leads"}},
		{"of something else", "404 page not found\nmore\n", 404,
			client.APIError{Status: 404, Message: "404 page not found"}},
		{"without a body", "", 503, client.APIError{Status: 503, Message: "no reason given"}},
		{"a redirect", "", 301, client.APIError{Status: 301, Message: "no reason given"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			}))
			_, err := c.Agent(t.Context())
			got, ok := errors.AsType[*client.APIError](err)
			if !ok || *got != test.want {
				t.Fatalf("got %#v, want %#v", err, test.want)
			}
		})
	}
}

func TestAnAnswerThatIsNoJSONIsAnError(t *testing.T) {
	_, err := serve(t, answer("GET /v1/agent", "<html>")).Agent(t.Context())
	if err == nil || !strings.Contains(err.Error(), "decode the answer to GET /v1/agent") {
		t.Fatalf("got %v", err)
	}
}

func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		blank := make([]byte, 1<<20)
		for {
			if _, err := w.Write(blank); err != nil {
				return
			}
		}
	}))
	_, err := c.Agent(t.Context())
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Fatalf("got %v", err)
	}
}

func TestCancellingIsNotTheAgentsFault(t *testing.T) {
	asked := make(chan struct{})
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := c.Agent(ctx)
	if _, ok := errors.AsType[*client.UnreachableError](err); ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %#v", err)
	}
}

func TestASilentAgentIsUnreachableWhenTimeIsUp(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Agent(ctx)
	unreachable, ok := errors.AsType[*client.UnreachableError](err)
	if !ok || !strings.Contains(unreachable.Reason, "no answer came in time") {
		t.Fatalf("got %#v", err)
	}
}
