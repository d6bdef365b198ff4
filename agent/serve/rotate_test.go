package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// bunch is a keyring whose keys are words. The fingerprint of a key is the key itself.
type bunch struct {
	mu     sync.Mutex
	keys   []string // the one in use first
	made   int
	refuse func(api.KeysRequest) bool
}

func (b *bunch) Keys() []api.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []api.Key{}
	for i, k := range b.keys {
		list = append(list, api.Key{Fingerprint: k, InUse: i == 0})
	}
	return list
}

func (b *bunch) NewKey() (text, print string) {
	b.made++
	print = fmt.Sprint("new", b.made)
	return print, print
}

func (b *bunch) ChangeKeys(r api.KeysRequest) *api.ErrorDetail {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil && b.refuse(r) {
		return &api.ErrorDetail{Code: api.CodeUnavailable, Message: "the disk is full"}
	}
	i := slices.Index(b.keys, r.Add+r.Use+r.Remove)
	switch {
	case r.Add != "" && i < 0:
		b.keys = append(b.keys, r.Add)
	case r.Add != "":
	case i < 0:
		return &api.ErrorDetail{Code: api.CodeNotFound, Message: "no key has this fingerprint"}
	case r.Use != "":
		b.keys = append([]string{r.Use}, slices.Delete(b.keys, i, i+1)...)
	case i == 0:
		return &api.ErrorDetail{Code: api.CodeInUse, Message: "in use"}
	default:
		b.keys = slices.Delete(b.keys, i, i+1)
	}
	return nil
}

func (b *bunch) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.keys, " ")
}

// town is a group of agents whose servers call each other. a, b and c are voters, d is not.
type town struct {
	mu     sync.Mutex
	own    *agent
	server map[election.PeerID]*serve.Server
	keys   map[string]*bunch
	logs   map[string]*book
	sent   map[string][]string // what each agent was asked
	before func(to string, c election.Call) (election.CallAnswer, error, bool)
}

type line struct {
	t    *town
	from election.PeerID
}

func (l line) Call(ctx context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error) {
	name := strings.TrimPrefix(string(to), "peer-")
	l.t.mu.Lock()
	l.t.sent[name] = append(l.t.sent[name], c.Method+" "+string(c.Body))
	before := l.t.before
	l.t.mu.Unlock()
	if before != nil {
		if a, err, done := before(name, c); done {
			return a, err
		}
	}
	return l.t.server[to].Forwarded(ctx, l.from, c), nil
}

func newTown(t *testing.T, also ...string) *town {
	t.Helper()
	v := &town{server: map[election.PeerID]*serve.Server{}, keys: map[string]*bunch{}, logs: map[string]*book{}, sent: map[string][]string{}}
	for _, name := range append([]string{"a", "b", "c", "d"}, also...) {
		id := election.PeerID("peer-" + name)
		k, log := &bunch{keys: []string{"old", "older"}}, &book{}
		a := stand(t, func(c *serve.Config) {
			c.Name, c.Self, c.Keyring, c.Other, c.Enter, c.Logger = name, election.Holder{Peer: id, Lineage: 1}, k, line{v, id}, log.enter, log.logger()
			v.server[id] = serve.New(*c)
		})
		t.Cleanup(func() { _ = v.server[id].Close(context.Background()) })
		v.keys[name], v.logs[name] = k, log
		p := a.picture.Load()
		p.View.Members = append(p.View.Members, member("c"), member("d"))
		p.Names["peer-c"], p.Names["peer-d"] = "c", "d"
		p.Connected = map[election.PeerID]bool{"peer-a": true, "peer-b": true, "peer-c": true, "peer-d": true}
		p.Status.Roster = &election.Roster{Voters: []election.Voter{{Name: "a", Peer: "peer-a"}, {Name: "b", Peer: "peer-b"}, {Name: "c", Peer: "peer-c"}}}
		if name == "a" {
			v.own = a
		}
	}
	return v
}

// rotates asks a for a rotation that gives the key to d too.
func (v *town) rotates(t *testing.T, rest string) (status int, text string) {
	t.Helper()
	status, text = v.own.do(t, http.MethodPost, "/v1/keys", `{"rotate":true,"with":["d"]`+rest+`}`)
	v.own.now.Add(int64(1e10)) // every turn has ended by then
	return status, text
}

func (v *town) have(t *testing.T, what string, want map[string]string) {
	t.Helper()
	for name, keys := range want {
		if got := v.keys[name].String(); got != keys {
			t.Errorf("%s: %s has the keys %q, want %q", what, name, got, keys)
		}
	}
}

func TestARotationGivesAllAgentsANewKey(t *testing.T) {
	v := newTown(t)
	// Each step is done at all agents before the next one.
	v.before = func(to string, c election.Call) (election.CallAnswer, error, bool) {
		var r api.KeysRequest
		_ = json.Unmarshal(c.Body, &r)
		for name, k := range v.keys {
			has, uses := strings.Contains(k.String(), "new1"), strings.HasPrefix(k.String(), "new1")
			if r.Use != "" && !has || r.Remove != "" && !uses {
				t.Errorf("%s at %s while %s has %s", c.Body, to, name, k)
			}
		}
		return election.CallAnswer{}, nil, false
	}
	status, text := v.rotates(t, "")
	if status != 200 || strings.TrimSpace(text) != `{"keys":[{"fingerprint":"new1","in_use":true}],"message":"a (peer-a), b (peer-b), c (peer-c), d (peer-d) have the new key"}` {
		t.Errorf("%d %s", status, text)
	}
	v.have(t, "after", map[string]string{"a": "new1", "b": "new1", "c": "new1", "d": "new1"})
	for name, log := range v.logs {
		entries, text := log.taken()
		if strings.Contains(text, "add=new1") != (name != "a") || len(entries) == 0 {
			t.Errorf("%s entered %+v and logged %s", name, entries, text)
		}
	}
}

func TestARotationGivesNoKeyToThoseWhoAreToHaveNone(t *testing.T) {
	v := newTown(t)
	p := v.own.picture.Load()
	p.Status.Roster.Next = []election.Voter{{Name: "a", Peer: "peer-a"}, {Name: "b", Peer: "peer-b"}} // a change is removing c
	status, text := v.rotates(t, `,"without":["d"]`)
	if status != 200 || !strings.Contains(text, "c (peer-c), d (peer-d) got no key") {
		t.Errorf("%d %s", status, text)
	}
	v.have(t, "after", map[string]string{"a": "new1", "b": "new1", "c": "old older", "d": "old older"})
	if len(v.sent["c"])+len(v.sent["d"]) > 0 {
		t.Errorf("c and d were asked: %v", v.sent)
	}
	for rest, want := range map[string]string{
		`,"without":["a"]`: "this agent makes the key", `,"without":["e"]`: "no agent of the cluster is named e", `,"use":"old"`: "goes with",
		`,"without":"d"`: "must be",
	} {
		if status, text := v.rotates(t, rest); status < 400 || status > 404 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", rest, status, text)
		}
	}
	if status, text := v.own.do(t, http.MethodPost, "/v1/keys", `{"use":"new1","without":["b"]}`); status != 400 {
		t.Errorf("without alone: %d %s", status, text)
	}
	p.Status.Quorum.Enabled = false
	if status, text := v.rotates(t, ""); status != 503 || !strings.Contains(text, "without quorum") {
		t.Errorf("without quorum: %d %s", status, text)
	}
	p.Status.Quorum.Enabled = true
	p.Status.Roster.Next = p.Status.Roster.Next[1:] // the change now removes a too
	if status, text := v.rotates(t, ""); status != 503 || !strings.Contains(text, "removes this agent") {
		t.Errorf("an agent that is removed itself: %d %s", status, text)
	}
}

// An agent whose removal begins while keys are sent gets no key.
func TestAnAgentThatIsRemovedMeanwhileGetsNoKey(t *testing.T) {
	v := newTown(t)
	v.before = func(to string, c election.Call) (election.CallAnswer, error, bool) {
		if to == "c" && c.Method == http.MethodGet {
			p := *v.own.picture.Load()
			status := *p.Status
			status.Roster = &election.Roster{Voters: p.Status.Roster.Voters, Next: p.Status.Roster.Voters[:2]}
			p.Status = &status
			v.own.picture.Store(&p)
		}
		return election.CallAnswer{}, nil, false
	}
	status, text := v.rotates(t, "")
	if status != 409 || !strings.Contains(text, "c (a change of the voters began that removes it)") || !strings.Contains(text, "taken back from the others") {
		t.Errorf("%d %s", status, text)
	}
	for _, sent := range v.sent["c"] {
		if strings.Contains(sent, "add") {
			t.Errorf("c was sent %s", sent)
		}
	}
	v.have(t, "after", map[string]string{"a": "old older", "b": "old older", "c": "old older", "d": "old older"})
}

func TestAgentsThatCannotBeReachedAreNotCutOffUnasked(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*town)
		want  string
	}{
		"one that does not answer": {func(v *town) {
			v.before = func(to string, _ election.Call) (election.CallAnswer, error, bool) {
				return election.CallAnswer{}, context.DeadlineExceeded, to == "d"
			}
		}, "d (context deadline exceeded)"},
		"one of a version before calls": {func(v *town) {
			v.before = func(to string, _ election.Call) (election.CallAnswer, error, bool) {
				return election.CallAnswer{}, forward.ErrNotSent, to == "d"
			}
		}, "d (the call can't be sent"},
		"one that does not count this agent as a voter": {func(v *town) {
			v.before = func(to string, c election.Call) (election.CallAnswer, error, bool) {
				return v.server["peer-b"].Forwarded(t.Context(), "peer-x", c), nil, to == "d"
			}
		}, "only from agents that are voters"},
		"a voter that gossip does not show": {func(v *town) {
			p := v.own.picture.Load()
			p.View.Members = slices.DeleteFunc(p.View.Members, func(m membership.Member) bool { return m.Name == "d" })
			p.Status.Roster.Voters = append(p.Status.Roster.Voters, election.Voter{Name: "d", Peer: "peer-d"})
		}, "d (not connected to gossip)"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTown(t)
			c.spoil(v)
			status, text := v.rotates(t, "")
			if status != 409 || !strings.Contains(text, `"key_missing"`) || !strings.Contains(text, "nothing was changed") || !strings.Contains(text, c.want) {
				t.Errorf("%d %s", status, text)
			}
			v.have(t, "refused", map[string]string{"a": "old older", "b": "old older", "c": "old older", "d": "old older"})
			status, text = v.rotates(t, `,"force":true`)
			if status != 200 || !strings.Contains(text, "d (peer-d) got no key") || !strings.Contains(text, "copy the key file") {
				t.Errorf("forced: %d %s", status, text)
			}
			v.have(t, "forced", map[string]string{"a": "new1", "b": "new1", "c": "new1", "d": "old older"})
			if status, text := v.rotates(t, `,"without":["d"]`); status != 200 {
				t.Errorf("without d: %d %s", status, text)
			}
			v.have(t, "without d", map[string]string{"a": "new2", "b": "new2", "c": "new2", "d": "old older"})
		})
	}
}

// Whichever step fails at whichever agent, the agents that were not cut off still understand each other. The
// next rotation leaves one key.
func TestARotationThatFailsHalfWaySaysWhatItLeft(t *testing.T) {
	for name, c := range map[string]struct {
		at    string
		fails func(api.KeysRequest) bool
		want  []string
		after map[string]string
	}{
		"accepting, at another agent": {"c", func(r api.KeysRequest) bool { return r.Add != "" },
			[]string{"the keys in use are unchanged", "c (the disk is full)", "taken back from the others", "run the command again"},
			map[string]string{"a": "old older", "b": "old older", "c": "old older", "d": "old older"}},
		"accepting, here": {"a", func(r api.KeysRequest) bool { return r.Add != "" },
			[]string{"nothing was changed", "the disk is full"}, map[string]string{"a": "old older", "b": "old older"}},
		"accepting, and taking back": {"c", func(r api.KeysRequest) bool { return r.Remove == "new1" },
			[]string{"the keys in use are unchanged", "could not be taken back from c", "keys remove new1"},
			map[string]string{"a": "old older", "b": "old older", "c": "old older new1"}},
		"using, at another agent": {"c", func(r api.KeysRequest) bool { return r.Use != "" },
			[]string{"stopped half-way", "c (the disk is full)", "is used by a, b, d", "nobody is cut off", "goes on"},
			map[string]string{"a": "new1 old older", "b": "new1 old older", "c": "old older new1"}},
		"using, here": {"a", func(r api.KeysRequest) bool { return r.Use != "" },
			[]string{"stopped half-way", "a (the disk is full)", "is used by b, c, d"}, map[string]string{"a": "old older new1", "b": "new1 old older"}},
		"dropping, at another agent": {"c", func(r api.KeysRequest) bool { return r.Remove != "" },
			[]string{"all agents use the new key new1", "c (the disk is full)", "can still join"}, map[string]string{"a": "new1", "b": "new1", "c": "new1 old older"}},
		"dropping, here": {"a", func(r api.KeysRequest) bool { return r.Remove != "" },
			[]string{"all agents use the new key new1", "a (the disk is full)"}, map[string]string{"a": "new1 old older", "b": "new1"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTown(t)
			v.keys[c.at].refuse = c.fails
			if name == "accepting, and taking back" {
				v.keys["d"].refuse = func(r api.KeysRequest) bool { return r.Add != "" }
			}
			status, text := v.rotates(t, "")
			if status < 409 {
				t.Errorf("%d %s", status, text)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in %s", want, text)
				}
			}
			v.have(t, "after", c.after)
			inUse := map[string]bool{}
			for _, k := range v.keys {
				inUse[k.Keys()[0].Fingerprint] = true
			}
			for name, k := range v.keys {
				for print := range inUse {
					if !strings.Contains(k.String()+" ", print+" ") {
						t.Errorf("%s has %s, and lacks %s, which another one uses", name, k, print)
					}
				}
				k.refuse = nil
			}
			if status, text := v.rotates(t, ""); status != 200 {
				t.Fatalf("again: %d %s", status, text)
			}
			v.have(t, "again", map[string]string{"a": "new2", "b": "new2", "c": "new2", "d": "new2"})
		})
	}
}

func TestAVoterThatJoinsDuringARotationIsNotCutOff(t *testing.T) {
	for step, want := range map[string]string{`"add"`: "the keys in use are unchanged", `"use"`: "the old keys were not dropped"} {
		v := newTown(t, "e")
		v.joins(step, true)
		status, text := v.rotates(t, "")
		if status != 409 || !strings.Contains(text, "e (it joined meanwhile") || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", step, status, text)
		}
		if status, text := v.rotates(t, ""); status != 200 || v.keys["e"].String() != "new2" {
			t.Errorf("again: %d %s", status, text)
		}
	}
}

func TestTwoRotationsDoNotMix(t *testing.T) {
	v := newTown(t)
	v.keys["a"].keys = []string{"old"} // this agent has a single key, so no rotation is under way
	add := election.Call{Method: "POST", Path: "/v1/keys", Body: []byte(`{"add":"k"}`), Caller: "user root (uid 0, pid 41, doyen keys)"}
	for _, c := range []struct {
		from   election.PeerID
		status uint64
	}{{"peer-x", 403}, {"peer-d", 403}, {"peer-b", 200}, {"peer-c", 503}, {"peer-b", 200}} {
		if got := v.server["peer-a"].Forwarded(t.Context(), c.from, add); got.Status != c.status {
			t.Errorf("%s: %d %s", c.from, got.Status, got.Body)
		}
	}
	entries, _ := v.logs["a"].taken()
	if len(entries) != 2 || *entries[0].By != (api.Caller{UID: 0, User: "root", PID: 41, Command: "doyen keys", Host: "b"}) || !strings.HasSuffix(entries[0].Reason, "asked by root on b") {
		t.Errorf("entered %+v", entries)
	}
	for _, body := range []string{`{"rotate":true}`, `{"rotate":true,"force":true}`} {
		if got := v.server["peer-a"].Forwarded(t.Context(), "peer-b", election.Call{Method: "POST", Path: "/v1/keys", Body: []byte(body)}); got.Status != 400 {
			t.Errorf("a forwarded rotation: %d %s", got.Status, got.Body)
		}
	}
	if got := v.server["peer-a"].Forwarded(t.Context(), "peer-d", election.Call{Method: "GET", Path: "/v1/keys"}); got.Status != 403 {
		t.Errorf("an agent that is not a voter reads: %d", got.Status)
	}
}
