package serve_test

import (
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// book is the history and the log of a server.
type book struct {
	mu      sync.Mutex
	entries []api.Transition
	log     strings.Builder
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *book) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func (b *book) enter(t api.Transition) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, t)
	return true
}

func (b *book) taken() ([]api.Transition, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	entries, log := b.entries, b.log.String()
	b.entries = nil
	b.log.Reset()
	return entries, log
}

// handsOver makes b lead, in a higher term, after each command to the elector.
func (a *agent) handsOver() {
	term := election.Term(8)
	a.on = func(election.Input) (election.Reply, error) {
		a.shows(elector.Following, election.Holder{Peer: "peer-b"}, term, a.clock().Add(time.Second))
		term++
		return election.Reply{}, nil
	}
}

// After an outage that a command has caused, an operator asks who gave the command.
func TestEachChangeIsEnteredWithWhoAskedForIt(t *testing.T) {
	t.Parallel() // the test waits
	b := &book{}
	a := stand(t, func(c *serve.Config) {
		c.Enter, c.Logger = b.enter, b.logger()
		c.Keyring = &keys{}
	})
	a.handsOver()
	const key = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I="
	for _, c := range []struct{ path, body, call, election string }{
		{"/v1/elections/default/transfer", `{"to":"b"}`, "transfer to=b,", "default"},
		{"/v1/elections/default/resign", ``, "resign,", "default"},
		{"/v1/drain", `{"on":true}`, "drain on=true,", ""},
		{"/v1/keys", `{"ADD":"` + key + `"}`, "keys ADD=…,", ""},
		{"/v1/keys", `{"use":"00aabbccddeeff00"}`, "keys use=00aabbccddeeff00,", ""},
		{"/v1/reload", ``, "reload,", ""},
		{"/v1/restart", `{}`, "restart,", ""},
		{"/v1/leave", ``, "leave,", ""},
	} {
		_, _ = a.do(t, http.MethodPost, c.path, c.body)
		got, log := b.taken()
		if len(got) != 1 || got[0].Type != api.ChangeCommand || got[0].By == nil || !strings.HasPrefix(got[0].Reason, c.call) || got[0].Election != c.election {
			t.Errorf("%s %s: entered %+v", c.path, c.body, got)
			continue
		}
		by := *got[0].By
		if by.UID != uint32(os.Getuid()) || by.User == "" || by.Host != "a" || got[0].Time.IsZero() || got[0].BoottimeNS == 0 {
			t.Errorf("%s: asked by %+v", c.path, got[0])
		}
		if leads := got[0].Leader != nil; leads != (c.election == "default") {
			t.Errorf("%s: the leader then was %+v", c.path, got[0].Leader)
		}
		if strings.Count(log, "level=INFO msg=\"asked for a change\"") != 1 || strings.Contains(log, key) || strings.Contains(got[0].Reason, key) {
			t.Errorf("%s: logged %s", c.path, log)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/voters", ""}, {http.MethodGet, "/v1/keys", ""}, {http.MethodPost, "/v1/drain", `{"on":tr`},
		// 92,376 such refused calls in 8 s once pushed root's drain out of the history.
		{http.MethodPost, "/v1/elections/default/transfer", `{"to":"nobody"}`}, {http.MethodPost, "/v1/elections/none/resign", ""}, {http.MethodPost, "/v1/voters", `{"remove":"b"}`},
	} {
		_, _ = a.do(t, c.method, c.path, c.body)
		if got, log := b.taken(); len(got) != 0 || strings.Contains(log, "asked for") {
			t.Errorf("%s %s %s: entered %+v", c.method, c.path, c.body, got)
		}
	}
}

// The text ends with the caller, and no body can forge that part.
func TestABodyForgesNobodysName(t *testing.T) {
	t.Parallel()
	b := &book{}
	a := stand(t, func(c *serve.Config) { c.Enter, c.Logger = b.enter, b.logger() })
	for body, want := range map[string]string{
		`{"on=true, asked by root on b":1}`:   `reload "on=true, asked by root on b"=1, asked by `,
		`{"on":"true, asked by root on b"}`:   `reload on="true, asked by root on b", asked by `,
		`{"on":"a=b"}`:                        `reload on="a=b", asked by `,
		`{"on":"\u202e\u009b"}`:               `reload on="\u202e\u009b", asked by `,
		`{"on":"\", asked by root on b, \""}`: `reload on="\", asked by root on b, \"", asked by `,
	} {
		_, _ = a.do(t, http.MethodPost, "/v1/reload", body)
		if got, _ := b.taken(); len(got) != 1 || !strings.HasPrefix(got[0].Reason, want) {
			t.Errorf("%s: entered %+v", body, got)
		}
	}
}
