package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

const twoChanges = `{"index":4,"type":"snapshot","term":7,"new_field":true}

{"index":5,"type":"leader","leader":{"name":"b"},"term":8}
`

// stream writes the text. If hold is set, it then waits until the client has gone.
func stream(call, text string, hold bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.RequestURI(); got != call {
			http.Error(w, "unexpected call "+got, http.StatusInternalServerError)
			return
		}
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		if hold {
			<-r.Context().Done()
		}
	})
}

func TestWatchYieldsEachChangeAndThenWhyItEnded(t *testing.T) {
	c := serve(t, stream("/v1/elections/default/watch?after=3", twoChanges, false))
	var raw []string
	c.Raw = func(line []byte) { raw = append(raw, string(line)) }
	var types []string
	var last error
	for change, err := range c.Watch(t.Context(), "default", 3) {
		if last = err; err == nil {
			types = append(types, change.Type)
		}
	}
	if !slices.Equal(types, []string{api.ChangeSnapshot, api.ChangeLeader}) {
		t.Errorf("changes %v", types)
	}
	if strings.Join(raw, "\n\n")+"\n" != twoChanges {
		t.Errorf("raw lines %q", raw)
	}
	checkUnreachable(t, last, "closed the connection", "log")
}

func TestWatchEndsWithItsContext(t *testing.T) {
	c := serve(t, stream("/v1/elections/default/watch", twoChanges, true))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for change, err := range c.Watch(ctx, "default", 0) {
		if change.Type == api.ChangeLeader {
			cancel()
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}

func TestLeavingAWatchHangsUp(t *testing.T) {
	gone := make(chan struct{})
	held := stream("/v1/elections/default/watch", twoChanges, true)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		held.ServeHTTP(w, r)
	}))
	for range c.Watch(t.Context(), "default", 0) {
		break
	}
	<-gone
}

func TestBadWatches(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no JSON", "hello\n", "decode the watch"},
		{"endless line", strings.Repeat("x", 2<<20) + "\n", "longer than"},
		{"cut off within a line", `{"type":"lea`, "closed the connection"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, stream("/v1/elections/default/watch", test.text, false))
			n, last := 0, error(nil)
			for _, err := range c.Watch(t.Context(), "default", 0) {
				n, last = n+1, err
			}
			if n != 1 || last == nil || !strings.Contains(last.Error(), test.want) {
				t.Errorf("%d elements, ended with %v, want %q", n, last, test.want)
			}
		})
	}
}

func TestARefusedWatchIsAnAPIError(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":{"code":"not_found","message":"no such election"}}`)
	}))
	for _, err := range c.Watch(t.Context(), "default", 0) {
		if refused, ok := errors.AsType[*client.APIError](err); !ok || refused.Code != api.CodeNotFound {
			t.Fatalf("got %#v", err)
		}
	}
}

// A leader's new meta and new candidates come as separate lines, which carry the election.
func TestWatchYieldsMetasAndCandidates(t *testing.T) {
	const leader = `"leader":{"name":"b","id":"B","addr":"x","meta":"b:81"}`
	c := serve(t, stream("/v1/elections/default/watch", `{"index":5,"type":"meta",`+leader+`,"term":8,"snapshot":{`+leader+`,"candidates":["b"]}}
{"index":5,"type":"candidates",`+leader+`,"term":8,"snapshot":{`+leader+`,"candidates":["b","a"]}}
{"index":5,"type":"of_a_later_version"}
`, false))
	var got []string
	for change, err := range c.Watch(t.Context(), "default", 0) {
		if err == nil && change.Snapshot != nil {
			got = append(got, change.Type+" "+change.Leader.Meta+" "+strings.Join(change.Snapshot.Candidates, ","))
		}
	}
	if want := []string{"meta b:81 b", "candidates b:81 b,a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
