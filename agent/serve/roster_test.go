package serve

import (
	"errors"
	"fmt"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

func TestAChangeOfVotersNamesOneAgentThatThereIs(t *testing.T) {
	member := func(name string, id election.PeerID) membership.Member {
		return membership.Member{Member: election.Member{Name: name, Peer: id}, Status: membership.Alive}
	}
	p := &Picture{
		Status: &elector.Status{Self: election.Holder{Peer: "pa"}, Roster: &election.Roster{
			Voters: []election.Voter{{Name: "a", Peer: "pa"}, {Name: "b", Peer: "pb"}}}},
		View: &membership.View{Members: []membership.Member{member("a", "pa"), member("b", "pb2"), member("d", "pd"), member("e", "pe")},
			Refused: []membership.Refusal{{Cause: membership.CauseName, Name: "e"}}},
	}
	for name, c := range map[string]struct {
		request     api.VotersRequest
		add, remove election.PeerID
		code        string
	}{
		"add":                             {api.VotersRequest{Add: "d"}, "pd", "", ""},
		"remove":                          {api.VotersRequest{Remove: "a"}, "", "pa", ""},
		"replace by the new identity":     {api.VotersRequest{Replace: "b"}, "pb2", "pb", ""},
		"nothing to replace it by":        {api.VotersRequest{Replace: "a"}, "", "", api.CodeNotFound},
		"add somebody absent":             {api.VotersRequest{Add: "x"}, "", "", api.CodeNotFound},
		"add a voter":                     {api.VotersRequest{Add: "a"}, "", "", api.CodeBadRequest},
		"add a voter's new identity":      {api.VotersRequest{Add: "b"}, "", "", api.CodeBadRequest},
		"remove somebody who is no voter": {api.VotersRequest{Remove: "d"}, "", "", api.CodeNotFound},
		"cancel and restore":              {api.VotersRequest{Cancel: true, Restore: true}, "", "", api.CodeBadRequest},
		"cancel and a name":               {api.VotersRequest{Add: "d", Cancel: true}, "", "", api.CodeBadRequest},
		"nothing":                         {api.VotersRequest{}, "", "", api.CodeBadRequest},
		"two at once":                     {api.VotersRequest{Add: "d", Remove: "a"}, "", "", api.CodeBadRequest},
		"no name":                         {api.VotersRequest{Add: "Not A Name"}, "", "", api.CodeBadRequest},
		"the identity that was confirmed": {api.VotersRequest{Replace: "b", ID: "pb2"}, "pb2", "pb", ""},
		"another identity":                {api.VotersRequest{Replace: "b", ID: "pb3"}, "", "", api.CodeNotFound},
		"another identity to add":         {api.VotersRequest{Add: "d", ID: "pa"}, "", "", api.CodeNotFound},
		"a name that two claim":           {api.VotersRequest{Add: "e"}, "", "", api.CodeBadRequest},
		"one of the two":                  {api.VotersRequest{Add: "e", ID: "pe"}, "pe", "", ""},
		"an identity to remove":           {api.VotersRequest{Remove: "a", ID: "pa"}, "", "", api.CodeBadRequest},
	} {
		got, bad := p.change(c.request)
		switch {
		case bad != nil || c.code != "":
			if bad == nil || bad.Code != c.code {
				t.Errorf("%s: refused %+v, want %q", name, bad, c.code)
			}
		case (len(got.Add) == 1) != (c.add != "") || c.add != "" && got.Add[0].Peer != c.add,
			(len(got.Remove) == 1) != (c.remove != "") || c.remove != "" && got.Remove[0] != c.remove:
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got, bad := p.change(api.VotersRequest{Cancel: true}); bad != nil || !got.Cancel || len(got.Add)+len(got.Remove) > 0 {
		t.Errorf("cancel: got %+v, %+v", got, bad)
	}
	if got, bad := p.change(api.VotersRequest{Restore: true}); bad != nil || !got.Restore || got.Cancel {
		t.Errorf("restore: got %+v, %+v", got, bad)
	}
	for i := len(p.Status.Roster.Voters); i < election.MaxVoters; i++ {
		id := fmt.Sprint("v", i)
		p.Status.Roster.Voters = append(p.Status.Roster.Voters, election.Voter{Name: id, Peer: election.PeerID(id)})
	}
	if _, bad := p.change(api.VotersRequest{Add: "d"}); bad == nil || bad.Code != api.CodeBadRequest {
		t.Errorf("one voter too many: refused %+v", bad)
	}
	if _, bad := p.change(api.VotersRequest{Replace: "b"}); bad != nil {
		t.Errorf("with as many voters as there may be none is replaced: %+v", bad)
	}
}

// A right belongs to an identity. If a voter is down and another agent has the voter's name, the name alone
// gives no right to either.
func TestANameThatTwoAgentsHaveGivesNoRight(t *testing.T) {
	p := &Picture{
		Status: &elector.Status{Roster: &election.Roster{Voters: []election.Voter{{Name: "a", Peer: "pa"}, {Name: "b", Peer: "pb"}, {Name: "c", Peer: "pc"}}}},
		View: &membership.View{Members: []membership.Member{
			{Member: election.Member{Name: "a", Peer: "pa"}, Status: membership.Alive}, {Member: election.Member{Name: "b", Peer: "stranger"}, Status: membership.Alive}}},
		Names: map[election.PeerID]string{"pa": "a", "pb": "b", "pc": "c", "stranger": "b"},
	}
	for given, want := range map[string]election.PeerID{"a": "pa", "c": "pc", "pb": "pb", "stranger": "stranger", "b": "", "x": ""} {
		got, bad := p.identities([]string{given})
		if (bad == nil) != (want != "") || want != "" && got[0] != want {
			t.Errorf("%s: %v, %v, want %q", given, got, bad, want)
		}
	}
	_, err := p.identities([]string{"b"})
	if bad, ok := errors.AsType[*api.ErrorDetail](err); !ok || bad.Code != api.CodeBadRequest {
		t.Errorf("refused with %+v", err)
	}
}

func TestAFormerIdentityOfALiveAgentIsNotListed(t *testing.T) {
	m := func(name string, id election.PeerID) membership.Member {
		return membership.Member{Member: election.Member{Name: name, Peer: id}, Status: membership.Dead}
	}
	p := &Picture{
		Status: &elector.Status{Roster: &election.Roster{Voters: []election.Voter{{Name: "c", Peer: "pc"}}}},
		View:   &membership.View{Members: []membership.Member{m("b", "pb2"), m("c", "pc2")}, Departed: []membership.Member{m("b", "pb"), m("c", "pc"), m("d", "pd")}},
	}
	ids := ""
	for _, listed := range p.Members() {
		ids += " " + listed.ID
	}
	if ids != " pb2 pc pc2 pd" {
		t.Errorf("listed are%s, want all but the former identity of b, which does not vote", ids)
	}
}

func TestAChangeUnderWayIsToldWithWhatItWaitsFor(t *testing.T) {
	p := &Picture{
		Status: &elector.Status{Self: election.Holder{Peer: "pa"},
			Roster: &election.Roster{Voters: []election.Voter{{Name: "a", Peer: "pa"}}, Next: []election.Voter{{Name: "a", Peer: "pa"}, {Name: "d", Peer: "pd"}}},
			Change: &election.ChangeStatus{Driver: "pa", Missing: []string{"d"}}},
		Names: map[election.PeerID]string{"pa": "a"},
	}
	c := p.voters(0).Change
	if c == nil || c.Driver != "a" || c.Committed || len(c.WaitsFor) != 1 || c.WaitsFor[0] != "d" || c.PromisesMS != 0 {
		t.Fatalf("tells %+v, want that a drives it and waits for d", c)
	}
	p.Status.Change = &election.ChangeStatus{Driver: "pa", Committed: true, Back: true, PromisesEnd: 1_500_000_000}
	c = p.voters(500_000_000).Change
	if !c.Committed || !c.GoingBack || c.PromisesMS != 1000 || len(c.WaitsFor) != 0 {
		t.Fatalf("tells %+v, want that it waits for a second more", c)
	}
}
