package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

func TestAQuorumReadNamesWhoAMajorityAndThisAgentName(t *testing.T) {
	a := stand(t)
	b := election.Holder{Peer: "peer-b", Lineage: 2}
	a.shows(elector.Following, b, 8, a.clock().Add(time.Second))
	said := func(s election.Record) func(election.Input) (election.Reply, error) {
		return func(in election.Input) (election.Reply, error) {
			if _, ok := in.(election.Inquire); !ok {
				t.Errorf("asked %T", in)
			}
			return election.Reply{Leader: s}, nil
		}
	}
	a.on = said(election.Record{Term: 8, Holder: b, Remaining: 5 * time.Second})
	if e := a.election(t, "/v1/elections/default?consistency=quorum"); e.Authority != "quorum" || e.Leader == nil || e.Leader.Name != "b" || e.LeaseRemainingMS > 1000 {
		t.Errorf("a confirmed leader: got %+v, want b until the end of its lease and no longer", e)
	}
	a.on = said(election.Record{Term: 9, Holder: election.Holder{Peer: "peer-c", Lineage: 3}, Remaining: time.Second})
	if e := a.election(t, "/v1/elections/default?consistency=quorum"); e.Leader != nil || e.State != "electing" || e.Term != 9 {
		t.Errorf("a majority holds to another: got %+v, want nobody yet", e)
	}
	a.on = said(election.Record{})
	if e := a.election(t, "/v1/elections/default?consistency=quorum"); e.Leader != nil || e.State != "electing" {
		t.Errorf("nobody by majority, but got %+v", e)
	}
}

func TestAQuorumReadOfAllElectionsAsksAboutEach(t *testing.T) {
	a := stand(t)
	b := election.Holder{Peer: "peer-b", Lineage: 2}
	lists := func(names ...election.Name) {
		p := *a.picture.Load()
		status := *p.Status
		status.Contests = nil
		for _, name := range names {
			status.Contests = append(status.Contests, &elector.ContestStatus{Election: name, State: elector.Following,
				Leader: b, Term: 8, ValidUntil: a.clock().Add(time.Second)})
		}
		p.Status = &status
		a.picture.Store(&p)
	}
	lists("backups", "payments")
	a.on = func(in election.Input) (election.Reply, error) {
		if in.(election.Inquire).Election == "payments" {
			return election.Reply{}, nil
		}
		return election.Reply{Leader: election.Record{Term: 8, Holder: b, Remaining: time.Second}}, nil
	}
	status, text := a.do(t, "GET", "/v1/elections?consistency=quorum", "")
	var all api.Elections
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != http.StatusOK || len(all.Elections) != 2 {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	backups, payments := all.Elections[0], all.Elections[1]
	if backups.Authority != "quorum" || backups.Leader == nil || backups.Leader.Name != "b" {
		t.Errorf("what the majority confirms: %+v", backups)
	}
	if payments.Authority != "quorum" || payments.Leader != nil || payments.State != "electing" {
		t.Errorf("what the majority does not: %+v", payments)
	}

	a.on = func(in election.Input) (election.Reply, error) {
		if in.(election.Inquire).Election == "payments" {
			return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNoMajority}}, nil
		}
		return election.Reply{}, nil
	}
	if status, text := a.do(t, "GET", "/v1/elections?consistency=quorum", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "no_quorum") || !strings.Contains(text, "payments: a majority of the voters can't be reached") {
		t.Errorf("one of them is not answered: %d %s", status, text)
	}

	var many []election.Name
	for i := range 33 {
		many = append(many, election.Name(fmt.Sprintf("e%02d", i)))
	}
	lists(many...)
	if status, text := a.do(t, "GET", "/v1/elections?consistency=quorum", ""); status != http.StatusBadRequest || !strings.Contains(text, "ask for each by its name") {
		t.Errorf("too many: %d %s", status, text)
	}
}
