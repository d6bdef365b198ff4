package serve_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// expects replaces the picture by one with these expected elections.
func (a *agent) expects(names ...election.Name) {
	p := *a.picture.Load()
	p.Expected = names
	a.picture.Store(&p)
}

func TestAnExpectedElectionExistsWithoutACandidate(t *testing.T) {
	a := stand(t)
	if status, text := a.do(t, http.MethodGet, "/v1/elections/payments", ""); status != http.StatusNotFound {
		t.Errorf("not expected: %d %s", status, text)
	}
	a.expects("backup", "default", "payments")
	if status, text := a.do(t, http.MethodGet, "/v1/elections/payments", ""); status != http.StatusOK || !strings.Contains(text, `"state":"idle","is_leader":false,"leader":null,"term":0`) {
		t.Errorf("expected: %d %s", status, text)
	}
	_, text := a.do(t, http.MethodGet, "/v1/elections", "")
	var at []int
	for _, name := range []string{"backup", "default", "payments"} {
		at = append(at, strings.Index(text, `{"election":"`+name+`"`))
	}
	if at[0] < 0 || at[0] > at[1] || at[1] > at[2] || strings.Count(text, `"default"`) != 1 {
		t.Errorf("listed as %s", text)
	}
	if n := len(a.picture.Load().Status.Contests); n != 1 {
		t.Errorf("what readers share has %d elections now", n)
	}
}

func TestTheLastCandidateOfAnExpectedElectionIsDrainedOnlyByForce(t *testing.T) {
	t.Parallel() // the test waits
	a := stand(t)
	drained := 0
	a.on = func(in election.Input) (election.Reply, error) {
		if in.(election.Drain).On {
			drained++
			a.shows(elector.Idle, election.Holder{}, 7, 0)
		}
		return election.Reply{}, nil
	}
	drain := func(body string) (int, string) { return a.do(t, http.MethodPost, "/v1/drain", body) }
	a.expects("default", "payments")
	p := *a.picture.Load()
	p.Connected = nil // b, the other candidate, is not connected
	a.picture.Store(&p)
	status, text := drain(`{"on":true}`)
	if status != http.StatusConflict || !strings.Contains(text, `"no_candidate"`) || !strings.Contains(text, "candidate in default,") || drained != 0 {
		t.Errorf("the last one: %d %s, drained %d times", status, text, drained)
	}
	if status, text := drain(`{"on":true,"force":true}`); status != http.StatusOK || drained != 1 {
		t.Errorf("by force: %d %s", status, text)
	}
	if status, text := drain(`{"on":false}`); status != http.StatusOK {
		t.Errorf("off: %d %s", status, text)
	}
	a.shows(elector.Following, election.Holder{Peer: "peer-b"}, 7, a.clock().Add(1e9)) // b is back
	a.expects("default", "payments")                                                   // payments has no candidate anyway, so it does not forbid the drain
	if status, text := drain(`{"on":true}`); status != http.StatusOK || drained != 2 {
		t.Errorf("with another candidate: %d %s", status, text)
	}
}
