package serve_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// joins makes e join while d carries out the step.
func (v *town) joins(step string, votes bool) {
	v.before = func(to string, c election.Call) (election.CallAnswer, error, bool) {
		if p := *v.own.picture.Load(); to == "d" && strings.Contains(c.Method+string(c.Body), step) && len(p.View.Members) == 4 {
			view, status, roster := *p.View, *p.Status, *p.Status.Roster
			view.Members = append(slices.Clone(view.Members), member("e"))
			if p.View, p.Status, status.Roster = &view, &status, &roster; votes {
				roster.Voters = append(slices.Clone(roster.Voters), election.Voter{Name: "e", Peer: "peer-e"})
			}
			v.own.picture.Store(&p)
		}
		return election.CallAnswer{}, nil, false
	}
}

// A stranger with the old key once joined under one new name after another, and got the new key.
func TestAStrangerThatJoinsGetsNoKeyAndStopsNoRotation(t *testing.T) {
	for _, step := range []string{"GET", `"add"`, `"use"`, `"remove"`} {
		v := newTown(t, "e")
		v.joins(step, false)
		status, text := v.rotates(t, "")
		if status != 200 || !strings.Contains(text, "e (peer-e) got no key") || !strings.Contains(text, "a (peer-a), b (peer-b), c (peer-c), d (peer-d) have the new key;") || len(v.sent["e"]) > 0 {
			t.Errorf("%s: %d %s, e was sent %v", step, status, text, v.sent["e"])
		}
		v.have(t, step, map[string]string{"a": "new1", "d": "new1", "e": "old older"})
	}
}

// An observer may be a stranger, or an agent that must not be cut off, so the request has to name it. If two
// observers have the name, the request has to give the ID.
func TestWhoGetsAKeyWithoutAVoteIsDecidedByName(t *testing.T) {
	for rest, c := range map[string]struct{ want, d, c string }{
		``:                                   {"would be cut off: d (peer-d)", "old older", "old older"},
		`,"with":["d"]`:                      {`"in_use":true`, "new1", "new1"},
		`,"with":["peer-d"]`:                 {`"in_use":true`, "new1", "new1"},
		`,"without":["d"]`:                   {"d (peer-d) got no key", "old older", "new1"},
		`,"without":["peer-d"]`:              {"d (peer-d) got no key", "old older", "new1"},
		`,"force":true`:                      {"d (peer-d) got no key", "old older", "new1"},
		`,"only":["b","c"]`:                  {"d (peer-d) got no key", "old older", "new1"},
		`,"only":["b","d"]`:                  {"c (peer-c) got no key", "new1", "old older"},
		`,"only":["b","c","x"]`:              {"is named x", "old older", "old older"},
		`,"only":["b"],"with":["b"]`:         {"c (peer-c), d (peer-d) got no key", "old older", "old older"},
		`,"with":["d"],"add":"AAAA"`:         {"goes with", "old older", "old older"},
		`,"with":["e"],"without":["d"]`:      {"two agents claim the name e: e (peer-e), and one at 10.0.0.9:7946", "old older", "old older"},
		`,"with":["peer-e"],"without":["d"]`: {`"in_use":true`, "old older", "new1"},
	} {
		v := newTown(t, "e")
		if strings.Contains(rest, `e"],`) {
			p := v.own.picture.Load()
			p.View.Members, p.Names["peer-e"] = append(p.View.Members, member("e")), "e"
			p.View.Refused = []membership.Refusal{{Cause: membership.CauseName, Name: "e", Addr: netip.MustParseAddrPort("10.0.0.9:7946")}}
		}
		_, text := v.own.do(t, http.MethodPost, "/v1/keys", `{"rotate":true`+rest+`}`)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want %s", rest, text, c.want)
		}
		v.have(t, rest, map[string]string{"d": c.d, "c": c.c})
	}
}
