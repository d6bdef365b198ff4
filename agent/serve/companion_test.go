package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

func (h *hall) Report(id string, c api.Companion, authorized func(uint32) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.Report(0, id, c, authorized)
}

// accompany asks to be a companion, and returns the status line and the lines after the head.
func (h *hall) accompany(t *testing.T, name, body string) (status string, lines *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/elections/%s/campaign HTTP/1.1\r\nHost: d\r\nContent-Length: %d\r\n\r\n%s", name, len(body), body)
	lines = bufio.NewReader(conn)
	status, err = lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for line := ""; line != "\r\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimSpace(strings.TrimPrefix(status, "HTTP/1.1 ")), lines
}

func TestWhoMayBeACompanionAndOfWhat(t *testing.T) {
	for body, want := range map[string]string{
		`{"role":"companion"}`: "200 OK",
		`{"role":"companion","companion":{"elections":["default","*"]}}`:   "200 OK",
		`{"role":"companion","companion":{"checks":{"*":{"able":false}}}}`: "200 OK",
		`{"role":"observer"}`:               "400 Bad Request",
		`{"companion":{}}`:                  "400 Bad Request",
		`{"role":"companion","priority":1}`: "400 Bad Request",
		`{"role":"companion","companion":{"elections":["No Name"]}}`:                  "400 Bad Request",
		`{"role":"companion","companion":{"failed":{"pay":"two\nlines"}}}`:            "400 Bad Request",
		`{"role":"companion","companion":{"checks":{"pay":{"reason":"two\nlines"}}}}`: "400 Bad Request",
	} {
		if got, _ := hosts(t).accompany(t, "payments", body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	h := hosts(t)
	if got, _ := h.accompany(t, "*", `{}`); got != "400 Bad Request" {
		t.Errorf("a candidate in every election: %s", got)
	}
	if got, _ := h.accompany(t, "*", `{"role":"companion"}`); got != "200 OK" {
		t.Errorf("a companion in every election: %s", got)
	}
	got, answer := h.accompany(t, "*", `{"role":"companion"}`)
	var e api.Error
	if err := json.NewDecoder(answer).Decode(&e); err != nil || got != "409 Conflict" || e.Err.Code != api.CodeInUse || !strings.Contains(e.Err.Message, "process ") {
		t.Errorf("a second one: %s, %+v, %v", got, e, err)
	}
}

func TestACompanionsLinesNameTheirElection(t *testing.T) {
	h := hosts(t)
	_, lines := h.accompany(t, "*", `{"role":"companion"}`)
	next := func() (e api.CampaignEvent) {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := next(); e.Type != api.CampaignCandidate || e.Campaign == "" {
		t.Errorf("first %+v", e)
	}
	h.with(func(r *actors.Registry) {
		r.Companions().Change("pay", api.Change{Type: api.ChangeNoLeader, Election: "pay", Term: 3, Reason: "resigned"})
	})
	if e := next(); e.Type != api.CampaignChanged || e.Election != "pay" || e.Change == nil || e.Change.Reason != "resigned" {
		t.Errorf("then %+v", e)
	}
}

func (h *hall) Acts(id string, term election.Term, authorized func(uint32) bool) (election.Name, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.Acts(id, term, authorized)
}
