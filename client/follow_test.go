package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// runs gives one answer to each watch. A text is a stream that is cut off. A number is a refusal with this
// status. When no answers are left, the stream stays open.
func runs(asked *[]string, answers ...any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RawQuery)
		n := len(*asked) - 1
		if n >= len(answers) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		switch answer := answers[n].(type) {
		case int:
			w.WriteHeader(answer)
			io.WriteString(w, `{"error":{"code":"not_found","message":"no such election"}}`)
		case string:
			io.WriteString(w, answer)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler) // as if the process was killed
		}
	})
}

func TestFollowGoesOnWithTheAgentsNextLife(t *testing.T) {
	var asked []string
	c := serve(t, runs(&asked,
		`{"index":5,"type":"snapshot"}`+"\n"+`{"index":6,"type":"leader"}`+"\n"+`{"index":7,"type":"te`,
		404,
		`{"index":6,"type":"snapshot"}`+"\n"+`{"index":1001,"type":"restarted"}`+"\n",
		503,
		`{"index":2000,"type":"lagged","missed":1}`+"\n",
	))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	var last error
	for change, err := range c.Follow(ctx, "default", time.Minute) {
		if last = err; err != nil {
			break
		}
		got = append(got, fmt.Sprint(change.Index, change.Type))
		if change.Type == api.ChangeLagged {
			cancel()
		}
	}
	if want := []string{"5snapshot", "6leader", "1001restarted", "2000lagged"}; !slices.Equal(got, want) {
		t.Errorf("followed %v, want %v", got, want)
	}
	if want := []string{"", "after=6", "after=6", "after=1001", "after=1001"}; len(asked) < 5 || !slices.Equal(asked[:5], want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}

// A refusal that will not change ends Follow at once. An agent that stays away ends it after the given time, with the
// reason why the agent went away.
func TestFollowEnds(t *testing.T) {
	const snapshot = `{"index":5,"type":"snapshot"}` + "\n"
	for _, test := range []struct {
		name    string
		away    time.Duration
		answers []any
		want    string
		asked   int
	}{
		{"refused at first", time.Minute, []any{404}, "no such election", 1},
		{"unknown at first", time.Minute, []any{""}, "closed the connection", 1},
		{"forbidden later", time.Minute, []any{snapshot, 403}, "no such election", 2},
		{"bad later", time.Minute, []any{snapshot, "hello\n"}, "decode the watch", 2},
		{"away for too long", 30 * time.Millisecond, slices.Concat([]any{snapshot}, slices.Repeat([]any{404}, 99)), "closed the connection", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			c := serve(t, runs(&asked, test.answers...))
			var last error
			for _, err := range c.Follow(t.Context(), "default", test.away) {
				last = err
			}
			if last == nil || !strings.Contains(last.Error(), test.want) || test.asked > 0 && len(asked) != test.asked {
				t.Errorf("ended with %v after %d requests, want %q", last, len(asked), test.want)
			}
			if _, unreachable := errors.AsType[*client.UnreachableError](last); unreachable != (test.want == "closed the connection") {
				t.Errorf("ended with %#v", last)
			}
		})
	}
}

// A reader that returns does not get the lines about candidates that it missed. So the new snapshot has to show them.
func TestFollowReportsCandidatesThatChangedWhileItWasAway(t *testing.T) {
	var asked []string
	snapshot := func(kind, candidates string) string {
		return `{"index":5,"type":"` + kind + `","snapshot":{"candidates":[` + candidates + `]}}` + "\n"
	}
	c := serve(t, runs(&asked,
		snapshot("snapshot", `"a"`)+snapshot("candidates", `"a","b"`),
		snapshot("snapshot", `"a","b"`),
		snapshot("snapshot", `"b"`)+`{"index":6,"type":"leader"}`+"\n",
	))
	var got []string
	for change, err := range c.Follow(t.Context(), "default", time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, change.Type)
		if change.Snapshot != nil {
			got[len(got)-1] += strings.Join(change.Snapshot.Candidates, ",")
		}
		if change.Type == api.ChangeLeader {
			break
		}
	}
	if want := []string{"snapshota", "candidatesa,b", "candidatesb", "leader"}; !slices.Equal(got, want) {
		t.Errorf("followed %q, want %q", got, want)
	}
}
