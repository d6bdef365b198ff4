package serve_test

import (
	"os"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/election"
)

// A user who knows the ID of another user's campaign can't write the word.
func TestAnotherUserWritesNoWord(t *testing.T) {
	r := actors.New(actors.Config{Settings: actors.Settings{Priority: 100}, NewID: func() string { return "k1" }})
	a := stand(t, func(c *serve.Config) { c.Campaigns = programs{r: r} })
	if _, err := r.Stand(0, actors.Request{Election: "payments", UID: 4343}); err != nil {
		t.Fatal(err)
	}
	r.Lead(0, "payments", 4, 1000, nil, nil)
	written := 0
	a.on = func(election.Input) (election.Reply, error) { written++; return election.Reply{}, nil }
	other := a.as(t, as{uid: 4242, gid: 4242})
	if status, text := other.do(t, "POST", "/v1/campaigns/k1/word", `{"term":4,"text":"x"}`); status != 403 || !strings.Contains(text, `"forbidden"`) || written > 0 {
		t.Errorf("another user: %d %s, %d written", status, text, written)
	}
	if status, text := a.as(t, as{uid: 4343, gid: 4343}).do(t, "POST", "/v1/campaigns/k1/word", `{"term":4,"text":"x"}`); status != 200 || written != 1 {
		t.Errorf("its own user: %d %s", status, text)
	}
	// All users who can read anything can read a word, so a word must not contain secrets.
	if status, text := other.do(t, "GET", "/v1/elections/default/word", ""); status != 200 {
		t.Errorf("read by another user: %d %s (uid %d)", status, text, os.Geteuid())
	}
}
