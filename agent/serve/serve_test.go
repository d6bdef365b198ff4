package serve_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

const patience = 30 * time.Second

// agent plays an agent: it has a picture, a clock and answers to commands.
type agent struct {
	now      atomic.Int64
	picture  atomic.Pointer[serve.Picture]
	hub      *watch.Hub
	on       func(election.Input) (election.Reply, error)
	ping     error
	left     chan struct{}
	ended    chan string // gets how the agent was to end itself
	client   *http.Client
	path     string
	priority int // a's priority in the pictures; 0: 100
}

func (a *agent) Ask(_ context.Context, command func(election.RequestID) election.Input) (election.Reply, error) {
	return a.on(command(1))
}
func (a *agent) Ping(context.Context) error              { return a.ping }
func (a *agent) Leave(context.Context) error             { close(a.left); return nil }
func (a *agent) Restart(context.Context) (string, error) { return "", nil }
func (a *agent) Restarts(string)                         { a.ended <- "stop" }
func (a *agent) Lasts() (record, service bool)           { return true, false }
func (a *agent) clock() election.Instant                 { return election.Instant(a.now.Load()) }
func (a *agent) Reload() api.Reload                      { return api.Reload{Outcome: api.Outcome{Done: true}} }

var self = election.Holder{Peer: "peer-a", Lineage: 1}

func member(name string) membership.Member {
	return membership.Member{
		Member: election.Member{
			Peer: election.PeerID("peer-" + name), Name: name,
		},
		Status: membership.Alive,
	}
}

// ranks returns the ranks of the candidates a and b.
func (a *agent) ranks() []election.Rank {
	return []election.Rank{{Priority: cmp.Or(a.priority, 100), Peer: "peer-a"}, {Priority: 100, Peer: "peer-b"}}
}

// shows replaces the picture by one in which that leader leads the election default until the instant.
func (a *agent) shows(state elector.State, leader election.Holder, term election.Term, until election.Instant) {
	a.picture.Store(&serve.Picture{
		Status: &elector.Status{
			Self:   self,
			Quorum: elector.QuorumStatus{Enabled: true, Voters: 3, Needed: 2, Reachable: 2, Exists: true, Edge: true},
			Contests: []*elector.ContestStatus{{
				Election: "default", State: state, Leader: leader, Term: term, ValidUntil: until,
				Candidates: []election.PeerID{"peer-a", "peer-b"}, Ranks: a.ranks(),
			}},
		},
		View:      &membership.View{Members: []membership.Member{member("a"), member("b")}},
		Names:     map[election.PeerID]string{"peer-a": "a", "peer-b": "b"},
		Connected: map[election.PeerID]bool{"peer-b": true},
		Warnings:  []api.Warning{},
	})
}

func policy(t testing.TB, c access.Config, owner access.Owner) *access.Policy {
	t.Helper()
	p, err := access.Resolve(c, owner)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stand serves an agent that leads default in term 7 for one more second.
func stand(t testing.TB, change ...func(*serve.Config)) *agent {
	t.Helper()
	a := &agent{hub: watch.NewHub(10), left: make(chan struct{}), ended: make(chan string, 1)}
	a.now.Store(int64(time.Hour))
	a.shows(elector.Leading, self, 7, a.clock().Add(time.Second))
	a.on = func(election.Input) (election.Reply, error) { return election.Reply{}, nil }
	dir, err := os.MkdirTemp("", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a.path = filepath.Join(dir, "run", "s")
	l, err := socket.Listen(a.path)
	if err != nil {
		t.Fatal(err)
	}
	c := serve.Config{
		Name: "a", Version: "1", Cluster: "x", Algorithm: "bully", Self: self, Lease: 50 * time.Millisecond,
		Picture: a.picture.Load, Clock: a.clock, Hub: a.hub, Metrics: http.NotFoundHandler(),
		Logger: slog.New(slog.DiscardHandler), Commands: a,
		Enter: func(api.Transition) bool { return true }, KeepDrain: func(bool) error { return nil }, Preemption: func() (bool, time.Duration) { return false, 0 },
		History: func(string, int) []api.Transition { return nil }, Pings: func(membership.Member) error { return errors.New("not tried") },
		Access: policy(t, access.Config{}, access.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}),
	}
	for _, f := range change {
		f(&c)
	}
	s := serve.New(c)
	s.Socket(l)
	reading, err := socket.Listen(a.path + "-read")
	if err != nil {
		t.Fatal(err)
	}
	s.ReadSocket(reading, a.path)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", a.path)
	}}
	a.client = &http.Client{Transport: transport, Timeout: patience}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	return a
}

func (a *agent) do(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://d"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (a *agent) election(t *testing.T, path string) api.Election {
	t.Helper()
	status, text := a.do(t, "GET", path, "")
	var e api.Election
	if err := json.Unmarshal([]byte(text), &e); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s: %v", path, status, text, err)
	}
	return e
}

func TestAnElectionIsAnsweredWithHowItIsKnown(t *testing.T) {
	a := stand(t)
	a.now.Add(int64(200 * time.Millisecond))
	e := a.election(t, "/v1/elections/default")
	if !e.IsLeader || e.State != "leading" || e.Leader.Name != "a" || e.Term != 7 || e.Authority != "lease" ||
		e.LeaseRemainingMS != 800 || e.ValidForMS != 800 || e.ValidUntilBoottimeNS != int64(time.Hour+time.Second) || e.Index != 10 ||
		strings.Join(e.Candidates, ",") != "a,b" {
		t.Errorf("got %+v", e)
	}
}

// If the loop hangs, the picture becomes old, and the lease in it ends.
func TestALeaseThatEndedIsNeverNamed(t *testing.T) {
	a := stand(t)
	a.now.Add(int64(time.Second))
	if e := a.election(t, "/v1/elections/default"); e.IsLeader || e.Leader != nil || e.State != "electing" || e.LeaseRemainingMS != 0 {
		t.Errorf("got %+v", e)
	}
	if status, text := a.do(t, "GET", "/leader", ""); status != http.StatusServiceUnavailable || text != "" {
		t.Errorf("/leader: %d %q", status, text)
	}
}

func TestWhoeverSendsAHigherPriorityAwayIsToldThatItComesBack(t *testing.T) {
	a := stand(t, func(c *serve.Config) {
		c.Preemption = func() (bool, time.Duration) { return true, 5 * time.Second }
	})
	a.priority = 200
	for drained, want := range map[bool]string{false: "takes the lead back after 5s", true: `"message":""`} {
		a.shows(elector.Leading, self, 7, a.clock().Add(time.Second))
		a.on = func(election.Input) (election.Reply, error) {
			a.shows(elector.Following, election.Holder{Peer: "peer-b", Lineage: 2}, 8, a.clock().Add(time.Hour))
			p := *a.picture.Load()
			status := *p.Status
			status.Draining = drained
			p.Status = &status
			a.picture.Store(&p)
			return election.Reply{}, nil
		}
		if _, text := a.do(t, "POST", "/v1/elections/default/transfer", `{"to":"b"}`); !strings.Contains(text, want) {
			t.Errorf("drained %t: %s, want %s", drained, text, want)
		}
	}
}

// A transfer to the leader itself succeeds without a command.
func TestATransferToTheLeaderItselfIsDoneAlready(t *testing.T) {
	a := stand(t)
	a.on = func(election.Input) (election.Reply, error) {
		t.Error("the elector was asked")
		return election.Reply{}, nil
	}
	status, text := a.do(t, "POST", "/v1/elections/default/transfer", `{"to":"a"}`)
	want := `{"done":true,"message":"it leads already; nothing was handed over","leader":{"name":"a","id":"peer-a","addr":""},"term":7,"waited_ms":0}`
	if status != 200 || strings.TrimSpace(text) != want {
		t.Errorf("%d %s, want %s", status, text, want)
	}
	a.now.Add(int64(time.Second)) // the lease has ended, so a does not lead any more
	a.on = func(election.Input) (election.Reply, error) {
		return election.Reply{Refusal: &election.Refusal{Why: election.DeniedNotLeader}}, nil
	}
	if status, text := a.do(t, "POST", "/v1/elections/default/transfer", `{"to":"a"}`); status != 409 {
		t.Errorf("after its lease: %d %s", status, text)
	}
}

func TestRefusalsKeepTheirCode(t *testing.T) {
	a := stand(t)
	for why, want := range map[election.Denial]struct {
		code   string
		status int
	}{
		election.DeniedNotLeader: {"not_leader", 409}, election.DeniedNobodyElse: {"no_candidate", 409}, election.DeniedNoMajority: {"no_quorum", 503},
		election.DeniedHandingOver: {"busy", 503}, election.DeniedNoChange: {"not_found", 404}, election.DeniedBarred: {"unavailable", 503},
	} {
		a.on = func(election.Input) (election.Reply, error) {
			return election.Reply{Refusal: &election.Refusal{Why: why, Election: "default"}}, nil
		}
		got, text := a.do(t, "POST", "/v1/elections/default/resign", "")
		if got != want.status || !strings.Contains(text, `"code":"`+want.code+`","message":"`) {
			t.Errorf("%s: %d %q, want %+v", why, got, text, want)
		}
	}
	a.on = func(election.Input) (election.Reply, error) { return election.Reply{}, errors.New("the agent stops") }
	if got, text := a.do(t, "POST", "/v1/drain", `{"on":false}`); got != 503 || !strings.Contains(text, "unavailable") {
		t.Errorf("stopping: %d %q", got, text)
	}
}

func TestOnlyTheOwnerMayChangeThings(t *testing.T) {
	// Only a user other than root can show this, since root may change everything.
	if os.Geteuid() == 0 {
		t.Skip("root may change everything; the rule itself is shown by the tests of package access")
	}
	a := stand(t, func(c *serve.Config) { c.Access = policy(t, access.Config{}, access.Owner{UID: 1, GID: 1}) })
	if status, text := a.do(t, "POST", "/v1/drain", `{"on":true}`); status != 403 || !strings.Contains(text, "forbidden") {
		t.Errorf("%d %q", status, text)
	}
}

func TestTheReadOnlyListenerTakesNoChanges(t *testing.T) {
	a := stand(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve.New(serve.Config{
		Self: self, Picture: a.picture.Load, Clock: a.clock, Hub: watch.NewHub(0),
		Metrics: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler), Commands: a,
	})
	s.TCP(l)
	defer s.Close(t.Context())
	for path, want := range map[string]int{"/leader": 200, "/livez": 200, "/readyz": 200, "/v1/agent": 404, "/v1/drain": 404} {
		response, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, response.StatusCode, want)
		}
	}
}

func TestLoadBalancersMayUseAnyMethod(t *testing.T) {
	a := stand(t)
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if status, _ := a.do(t, method, "/leader", ""); status != 200 {
			t.Errorf("%s while leading: %d", method, status)
		}
	}
	a.shows(elector.Following, election.Holder{Peer: "peer-b", Lineage: 2}, 8, a.clock().Add(time.Second))
	if status, text := a.do(t, "GET", "/leader", ""); status != 503 || text != "b\n" {
		t.Errorf("while following: %d %q", status, text)
	}
}

func TestLivenessIsTheLoopsAndReadinessTheQuorums(t *testing.T) {
	a := stand(t)
	a.ping = errors.New("hangs")
	if status, _ := a.do(t, "GET", "/livez", ""); status != 503 {
		t.Errorf("/livez with a hanging loop: %d", status)
	}
	a.picture.Store(&serve.Picture{
		Status: &elector.Status{Self: self, Quorum: elector.QuorumStatus{Enabled: true, Voters: 3, Needed: 2, Reachable: 1}},
		View:   &membership.View{},
	})
	if status, _ := a.do(t, "GET", "/readyz", ""); status != 503 {
		t.Errorf("/readyz without leader and quorum: %d", status)
	}
	if e := a.election(t, "/v1/elections/default"); e.State != "no_quorum" || e.Leader != nil {
		t.Errorf("default always exists: %+v", e)
	}
	if status, text := a.do(t, "GET", "/v1/agent", ""); status != 200 || !strings.Contains(text, `"state":"lost"`) {
		t.Errorf("/v1/agent: %d %q", status, text)
	}
}

func (a *agent) succeeds(name string, term election.Term) func(election.Input) (election.Reply, error) {
	return func(election.Input) (election.Reply, error) {
		a.shows(elector.Following, election.Holder{Peer: election.PeerID("peer-" + name), Lineage: 2}, term, a.clock().Add(time.Hour))
		a.hub.Publish(api.Change{Election: "default", Type: api.ChangeLeader})
		return election.Reply{}, nil
	}
}

func TestChangesAnswerWithTheirOutcome(t *testing.T) {
	t.Parallel() // the test waits
	a := stand(t)
	leading := a.picture.Load()
	cases := []struct {
		path, body, heir string
		want             string
	}{
		{"/v1/elections/default/resign", "", "b", `"done":true,"message":"","leader":{"name":"b","id":"peer-b"`},
		{"/v1/elections/default/transfer", `{"to":"b","extra":1}`, "b", `"done":true`},
		{"/v1/elections/default/transfer", `{"to":"b"}`, "a", `"done":false,"message":"the target did not take over; a did"`},
		{"/v1/drain", `{"on":true}`, "b", `"done":true,"message":"","leader":{"name":"b"`},
	}
	for _, c := range cases {
		a.picture.Store(leading)
		a.on = a.succeeds(c.heir, 8)
		if status, text := a.do(t, "POST", c.path, c.body); status != 200 || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %q, want %s", c.path, c.body, status, text, c.want)
		}
	}
	// An agent that has just stepped down is not a candidate in the picture. It leads again all the same if no other
	// agent can.
	stoodDown := *leading
	status := *stoodDown.Status
	status.Contests = slices.Clone(status.Contests)
	status.Contests[0].Candidates = nil
	stoodDown.Status = &status
	a.picture.Store(&stoodDown)
	a.on = a.succeeds("b", 8)
	if _, text := a.do(t, "POST", "/v1/drain", `{"on":true}`); !strings.Contains(text, `"message":"","leader":{"name":"b"`) {
		t.Errorf("drain to one that stood down: %s", text)
	}
	a.picture.Store(leading)
	a.on = a.succeeds("a", 8) // its turn to hand over has not come, and it takes a higher term
	if _, text := a.do(t, "POST", "/v1/drain", `{"on":true}`); !strings.Contains(text, `"message":"no other agent leads default yet","waited_ms"`) {
		t.Errorf("drain while it still leads: %s", text)
	}
	alone := *leading
	alone.Connected = nil
	a.picture.Store(&alone)
	a.on = func(election.Input) (election.Reply, error) { return election.Reply{}, nil }
	if _, text := a.do(t, "POST", "/v1/drain", `{"on":true}`); !strings.Contains(text, `"message":"nobody else can lead default"`) {
		t.Errorf("drain with nobody in reach: %s", text)
	}
	a.picture.Store(leading)
	a.on = func(election.Input) (election.Reply, error) { return election.Reply{}, nil }
	if status, text := a.do(t, "POST", "/v1/elections/default/resign", ""); status != 200 || !strings.Contains(text, "nobody leads yet") {
		t.Errorf("without a successor: %d %q", status, text)
	}
	if status, _ := a.do(t, "POST", "/v1/leave", ""); status != 200 {
		t.Errorf("leave: %d", status)
	}
	<-a.left
}
