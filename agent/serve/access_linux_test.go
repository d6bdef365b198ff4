package serve_test

import (
	"os"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// stage refuses every candidacy, and keeps the requests.
type stage struct {
	campaigns
	asked []actors.Request
}

type campaigns = serve.Campaigns // this name keeps the embedded field apart from the method Campaigns

func (s *stage) Stand(q actors.Request) (*actors.Candidacy, error) {
	s.asked = append(s.asked, q)
	return nil, &api.ErrorDetail{Code: api.CodeBusy, Message: "the stage is full"}
}

func (s *stage) Campaigns() []api.Campaign {
	return []api.Campaign{{Campaign: "ROOTS", Election: "payments", UID: 0}, {Campaign: "THEIRS", Election: "payments", UID: 4100}}
}

// Only those who may give a campaign's receipt see its ID.
func TestTheIDOfACampaignIsShownToItsUserAlone(t *testing.T) {
	var server *serve.Server
	a := stand(t, func(c *serve.Config) {
		c.Campaigns, c.HTTPAPI = &stage{}, true
		c.Access = policy(t, access.Config{}, access.Owner{UID: 4000, GID: 4001})
		server = serve.New(*c)
	})
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	// A caller over TCP counts as no user, not as user 0.
	if _, text := glance(t, server, "/v1/campaigns"); strings.Contains(text, "ROOTS") || strings.Contains(text, "THEIRS") || strings.Count(text, `"election":"payments"`) != 2 {
		t.Errorf("over --http everybody sees %s", text)
	}
	for uid, want := range map[uint32]string{0: "ROOTS THEIRS", 4000: "ROOTS THEIRS", 4100: "THEIRS", 4200: ""} {
		_, text := a.as(t, as{uid: uid, gid: 4300}).do(t, "GET", "/v1/campaigns", "")
		for _, id := range []string{"ROOTS", "THEIRS"} {
			if strings.Contains(text, id) != strings.Contains(want, id) || strings.Count(text, `"election":"payments"`) != 2 {
				t.Errorf("user %d sees %s, want the IDs %q of two campaigns", uid, text, want)
			}
		}
	}
}

// A member of the agent's group, such as any application that asks who leads, could once change keys, remove
// voters, preempt every program and stop the agent.
func TestTheAgentsGroupCannotTakeTheClusterOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as another user; CI runs this as root")
	}
	k, programs := &keys{}, &stage{}
	a := stand(t, func(c *serve.Config) {
		c.Keyring, c.Campaigns = k, programs
		c.Access = policy(t, access.Config{
			Elections: map[string]access.Rules{access.Rest: {
				Campaign: &access.List{Groups: []string{"4001"}}, HandOver: &access.List{Groups: []string{"4001"}}, MaxPriority: new(200),
			}, "payments": {Campaign: &access.List{Users: []string{"4100"}}, HandOver: &access.List{}}},
		}, access.Owner{UID: 4000, GID: 4001})
	})
	var reached []election.Input
	a.on = func(in election.Input) (election.Reply, error) {
		reached = append(reached, in)
		return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNotLeader}}, nil
	}
	member := a.as(t, as{uid: 65534, gid: 65534, groups: []int{4001}})
	for _, c := range []struct{ path, body, lacks string }{
		{"/v1/keys", `{"add":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}`, `"admin\"`},
		{"/v1/voters", `{"remove":"a"}`, `"admin\"`},
		{"/v1/elections/default/campaign", `{"priority":1000000}`, "max-priority"},
		{"/v1/elections/payments/campaign", `{"priority":1}`, `"campaign\"`},
		{"/v1/elections/payments/resign", `{}`, `"hand-over\"`},
		{"/v1/elections/payments/transfer", `{"to":"b"}`, `"hand-over\"`},
		{"/v1/drain", `{"on":true}`, `"admin\"`},
		{"/v1/leave", `{}`, `"admin\"`},
		{"/v1/restart", `{}`, `"admin\"`},
		{"/v1/reload", `{}`, `"admin\"`},
		{"/v1/settings", `{"lease_ms":2000}`, `"admin\"`},
		{"/v1/elections/payments/allow", `{}`, `"admin\"`},
	} {
		status, text := member.do(t, "POST", c.path, c.body)
		if status != 403 || !strings.Contains(text, `"code":"forbidden"`) || !strings.Contains(text, c.lacks) || !strings.Contains(text, "`access.") {
			t.Errorf("%s: %d %s, want 403 that names %s", c.path, status, text, c.lacks)
		}
	}
	if len(reached) > 0 || k.asked.Add+k.asked.Use+k.asked.Remove != "" || len(programs.asked) > 0 {
		t.Errorf("reached: %v, keys %+v, candidacies %v", reached, k.asked, programs.asked)
	}
	select {
	case <-a.left:
		t.Error("the agent was stopped")
	default:
	}
	// A member of the agent's group may hand over, campaign and read.
	if status, text := member.do(t, "POST", "/v1/elections/default/resign", `{}`); status != 409 || !strings.Contains(text, api.CodeNotLeader) {
		t.Errorf("resign: %d %s", status, text)
	}
	if status, text := member.do(t, "POST", "/v1/elections/default/campaign", `{}`); status != 503 || len(programs.asked) != 1 || *programs.asked[0].MaxPriority != 200 {
		t.Errorf("campaign: %d %s %+v", status, text, programs.asked)
	}
	if status, text := member.do(t, "GET", "/v1/voters", ""); status != 200 {
		t.Errorf("reading: %d %s", status, text)
	}
	// A user who has one right needs no other right to use it.
	if status, text := a.as(t, as{uid: 4100, gid: 4100}).do(t, "POST", "/v1/elections/payments/campaign", `{}`); status != 503 || len(programs.asked) != 2 {
		t.Errorf("whom the election names: %d %s", status, text)
	}
	if status, text := a.as(t, as{uid: 4000, gid: 4100}).do(t, "POST", "/v1/keys", `{"add":"x"}`); status != 200 {
		t.Errorf("the agent's user: %d %s", status, text)
	}
}

// `act-user` gives only the right to be a companion. The right to campaign is another one, and neither gives
// the other.
func TestOnlyActUserMayBeACompanionWithoutFurtherRights(t *testing.T) {
	programs, acts := &stage{}, uint32(4100)
	a := stand(t, func(c *serve.Config) {
		c.Campaigns, c.ActUser = programs, &acts
		c.Access = policy(t, access.Config{Elections: map[string]access.Rules{"payments": {Campaign: &access.List{Users: []string{"4200"}}}}},
			access.Owner{UID: 4000, GID: 4001})
	})
	for uid, want := range map[uint32]int{0: 503, 4000: 503, 4100: 503, 4200: 403, 4300: 403} { // 503: the stage has refused, so the right was given
		other := a.as(t, as{uid: uid, gid: 4300})
		for _, name := range []string{"*", "default", "payments"} {
			if status, text := other.do(t, "POST", "/v1/elections/"+name+"/campaign", `{"role":"companion"}`); status != want {
				t.Errorf("user %d, %s: %d %s, want %d", uid, name, status, text, want)
			}
		}
	}
	if status, text := a.as(t, as{uid: acts, gid: 4300}).do(t, "POST", "/v1/elections/payments/campaign", `{}`); status != 403 {
		t.Errorf("a candidacy of act-user: %d %s", status, text)
	}
	if len(programs.asked) != 9 {
		t.Errorf("%d companions, want 9", len(programs.asked))
	}
}
