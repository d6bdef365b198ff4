package serve_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

func TestMembersAreToldInWholeMillisecondsAndWithWhatTheyAre(t *testing.T) {
	a := stand(t)
	view := &membership.View{}
	contest := elector.ContestStatus{Election: election.Default}
	for i, rtt := range []time.Duration{0, 1, 400 * time.Microsecond, time.Millisecond, time.Millisecond + 1, 12 * time.Millisecond} {
		m := member(string(rune('a' + i)))
		m.RTT = rtt
		view.Members = append(view.Members, m)
		contest.Ranks = append(contest.Ranks, election.Rank{Priority: 100, Peer: m.Peer})
	}
	contest.Ranks[1].Priority = 0
	p, status := *a.picture.Load(), *a.picture.Load().Status
	status.Contests = []*elector.ContestStatus{&contest}
	p.View, p.Status = view, &status
	a.picture.Store(&p)
	_, text := a.do(t, "GET", "/v1/members", "")
	var got struct {
		Members []struct {
			RTT json.Number `json:"rtt_ms"`
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "invalid") {
		t.Errorf("an address that is not known is told as one: %s", text)
	}
	if n := strings.Count(text, `"candidate":true`); n != len(view.Members)-1 {
		t.Errorf("%d candidates; one of %d never leads: %s", n, len(view.Members), text)
	}
	var all []string
	for _, m := range got.Members {
		all = append(all, m.RTT.String())
	}
	if strings.Join(all, " ") != "0 1 1 1 2 12" {
		t.Errorf("rtt_ms %v; want them rounded up, and 0 only for what was not measured", all)
	}
}
