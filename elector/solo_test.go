package elector

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// solo is one elector, a, of the voters a, b and c. The test plays its peers. What a writes is on
// disk at once.
type solo struct {
	t    *testing.T
	e    *Elector
	now  election.Instant
	wake election.Instant
	view election.View
	disk election.State
	cfg  election.Config
	past election.Past // what it has on record

	writes int
	stuck  bool   // the disk completes no writes
	begun  uint64 // the write that hangs

	sent      []delivery
	withdrawn []election.Withdrawal
	announced []election.Announcement
	redialled []election.PeerID
	replies   []election.Reply
}

// delivery is a message that was sent.
type delivery struct {
	at election.Instant
	election.Envelope
}

var (
	soloSelf   = election.Holder{Peer: "a", Lineage: 7}
	soloRoster = &election.Roster{Cluster: "x", Version: election.Version{Counter: 1},
		Voters: []election.Voter{{Name: "a", Peer: "a"}, {Name: "b", Peer: "b"}, {Name: "c", Peer: "c"}}}
	ownLease = quorum.HolderLease(testTiming.Lease, election.DefaultDrift)
)

// member is an agent as gossip sees it. At equal priority, a ranks highest.
func member(name string, priority int) election.Member {
	return election.Member{Peer: election.PeerID(name), Lineage: 1, Name: name, JoinedAt: int64(name[0]),
		Candidacies: []election.Candidacy{{Election: election.Default, Priority: priority}}}
}

// newSolo starts agent a one minute after its clock began. b and c are connected, and their reports are
// empty. a is not a candidate.
func newSolo(t *testing.T, edit func(*election.Config, *election.State)) *solo {
	t.Helper()
	cfg := election.Config{Self: soloSelf, Name: "a", JoinedAt: 'a', Quorum: true, Algorithm: election.Bully, Timing: testTiming,
		Drift: election.DefaultDrift, Preempt: true, PreemptDelay: time.Second}
	s := &solo{t: t, now: at(60_000), view: election.View{Members: []election.Member{member("a", 100), member("b", 100), member("c", 100)}}}
	state := election.State{Peer: "a", Roster: soloRoster}
	if edit != nil {
		edit(&cfg, &state)
	}
	s.begin(cfg, state, nil)
	s.view.Members[0].Lineage = soloSelf.Lineage
	s.step(election.ViewChanged{View: s.view})
	others := state.Roster
	if others == nil {
		others = soloRoster
	}
	for _, v := range others.All() {
		if v.Peer != "a" {
			s.connect(v.Peer, election.Report{Voter: true, Roster: state.Roster, Stamp: 5})
		}
	}
	return s
}

func (s *solo) begin(cfg election.Config, state election.State, past *election.Past) {
	s.t.Helper()
	e, err := New(cfg, state, past, s.now, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.e, s.cfg, s.disk = e, cfg, state
	s.past.Lineage = election.Lineage{ID: cfg.Self.Lineage, Life: cfg.Life, JoinedAt: cfg.JoinedAt, Lease: cfg.Lease}
}

// newLone starts agent a with that state. No other agent is a candidate, so a is nominated as soon
// as it becomes one.
func newLone(t *testing.T, disk election.State) *solo {
	t.Helper()
	s := newSolo(t, func(_ *election.Config, st *election.State) {
		st.Roster, st.Grants = disk.Roster, disk.Grants
	})
	s.disk = disk
	for i := range s.view.Members {
		s.view.Members[i].Candidacies = nil
	}
	s.step(election.ViewChanged{View: s.view})
	s.take()
	return s
}

func (s *solo) connect(p election.PeerID, r election.Report) {
	s.step(election.PeerConnected{Peer: p, Lineage: 1})
	s.hear(p, r)
}

func (s *solo) campaign(name election.Name) {
	s.step(election.Campaign{Election: name, Priority: 100})
}

func at(ms int) election.Instant { return election.Instant(time.Duration(ms) * time.Millisecond) }

func (s *solo) step(in election.Input) {
	out := s.e.Step(s.now, in)
	if s.t != nil { // in a benchmark this would be what is measured
		if problem := stale(s.e); problem != "" {
			s.t.Fatalf("after %T: %s", in, problem)
		}
		s.past.LifeRecord = recorded(s.past.LifeRecord, out)
		if problem := unrecorded(s.e, s.past.LifeRecord, out); problem != "" {
			s.t.Fatalf("after %T: %s", in, problem)
		}
	}
	s.wake = out.WakeAt
	for _, m := range out.Send {
		s.sent = append(s.sent, delivery{at: s.now, Envelope: m})
	}
	s.withdrawn = append(s.withdrawn, out.Withdraw...)
	s.announced = append(s.announced, out.Announce...)
	s.redialled = append(s.redialled, out.Redial...)
	s.replies = append(s.replies, out.Replies...)
	if out.Persist != nil && s.stuck {
		s.begun = out.Persist.Write
	} else if out.Persist != nil {
		s.writes++
		s.disk = s.disk.After(out.Persist)
		s.step(election.Persisted{Write: out.Persist.Write})
	}
}

func (s *solo) hear(from election.PeerID, m election.Message) {
	s.step(election.Received{From: from, Message: m})
}

// pass lets time pass, with a Tick whenever agent a asked for one.
func (s *solo) pass(d time.Duration) {
	s.t.Helper()
	end := s.now.Add(d)
	for range 2_000 { // no test needs more
		if s.wake > end {
			s.now = end
			return
		}
		s.now = max(s.now, s.wake)
		s.step(election.Tick{})
	}
	s.t.Fatal("wakes itself for ever")
}

// clear drops all outputs so far.
func (s *solo) clear() { s.sent, s.withdrawn, s.announced, s.replies = nil, nil, nil, nil }

// take returns the messages sent since its last call.
func (s *solo) take() []delivery {
	sent := s.sent
	s.sent, s.withdrawn, s.announced = nil, nil, nil
	return sent
}

// sentTo returns the messages of one type that were sent to a peer.
func sentTo[M election.Message](sent []delivery, to election.PeerID) (ms []M) {
	for _, d := range sent {
		if m, ok := d.Message.(M); ok && d.To == to {
			ms = append(ms, m)
		}
	}
	return ms
}

// last returns the newest message of one type that was sent to a peer.
func last[M election.Message](s *solo, to election.PeerID) M {
	s.t.Helper()
	ms := sentTo[M](s.sent, to)
	if len(ms) == 0 {
		var none M
		s.t.Fatalf("no %T left for %s: %+v", none, to, s.sent)
	}
	return ms[len(ms)-1]
}

func (s *solo) status(name election.Name) ContestStatus {
	for _, c := range s.e.Status(s.now).Contests {
		if c.Election == name {
			return *c
		}
	}
	return ContestStatus{}
}

func (s *solo) leads(name election.Name) bool { return s.status(name).State == Leading }

// grant is the vote of b or c for a request.
func grant(r election.VoteRequest) election.VoteGrant {
	return election.VoteGrant{Election: r.Election, Term: r.Term, Holder: r.Holder, Send: r.Send, Version: r.Roster.Version, Stamp: 5}
}

// ack is the answer of b or c to a heartbeat.
func ack(h election.Heartbeat, nacks ...election.Nack) election.HeartbeatAck {
	return election.HeartbeatAck{Lineage: h.Lineage, Send: h.Send, Version: h.Version, Stamp: 5, Nacks: nacks}
}

// leader makes agent a the leader of default, by a vote of b that came at once.
func (s *solo) leader() *solo {
	s.t.Helper()
	s.elect(election.Default)
	return s
}

// elect makes agent a the leader by b's vote, and returns the request that b answered.
func (s *solo) elect(name election.Name) election.VoteRequest {
	s.t.Helper()
	s.campaign(name)
	s.answerRound()
	r := s.request(s.sent, "b", name)
	s.hear("b", grant(r))
	if !s.leads(name) {
		s.t.Fatalf("does not lead %s: %+v", name, s.sent)
	}
	return r
}

// request returns the newest Vote Request to that voter about that election.
func (s *solo) request(sent []delivery, to election.PeerID, name election.Name) election.VoteRequest {
	s.t.Helper()
	rs := slices.DeleteFunc(sentTo[election.VoteRequest](sent, to), func(r election.VoteRequest) bool { return r.Election != name })
	if len(rs) == 0 {
		s.t.Fatalf("no Vote Request about %s to %s among %+v", name, to, sent)
	}
	return rs[len(rs)-1]
}

// answerRound lets a win the present round of selection, if there is one.
func (s *solo) answerRound() {
	for range 20 {
		if len(sentTo[election.VoteRequest](s.sent, "b")) > 0 {
			return
		}
		s.pass(testTiming.Heartbeat / 4)
	}
	s.t.Fatalf("no nomination: %+v", s.sent)
}
