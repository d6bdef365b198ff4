package elector

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// dies ends a's life, and begins the next one with its record. Nobody is connected yet.
func (s *solo) dies(edit func(*Config, *election.Past)) *solo {
	s.t.Helper()
	cfg, past := s.cfg, s.past
	past.Rows = slices.Clone(past.Rows)
	cfg.Life++
	if edit != nil {
		edit(&cfg, &past)
	}
	n := &solo{t: s.t, now: s.now, view: s.view, past: past}
	n.begin(cfg, s.disk, &past)
	return n
}

// meets connects b and c.
func (s *solo) meets() *solo {
	s.step(election.ViewChanged{View: s.view})
	for _, p := range []election.PeerID{"b", "c"} {
		s.connect(p, election.Report{Voter: true, Roster: s.disk.Roster, Stamp: 5})
	}
	return s
}

// asked is the highest term that left in a Vote Request.
func asked(sent []delivery, name election.Name) (highest election.Term) {
	for _, d := range sent {
		if r, ok := d.Message.(election.VoteRequest); ok && r.Election == name {
			highest = max(highest, r.Term)
		}
	}
	return highest
}

func releases(sent []delivery) (rs []election.Release) {
	for _, d := range sent {
		if r, ok := d.Message.(election.Release); ok {
			rs = append(rs, r)
		}
	}
	return rs
}

func TestK1TheRecordComesWithWhatRestsOnIt(t *testing.T) {
	s := newSolo(t, nil)
	row := func() election.Authority { return rowOf(s.past.LifeRecord, election.Default) }
	if len(s.past.Rows) != 0 {
		t.Fatalf("on record is %+v before anything was asked for", s.past.Rows)
	}
	s.leader()
	led := row()
	if led.Term != 1 || led.Highest != 1 || led.Priority != 100 || led.Until != s.status(election.Default).ValidUntil || led.Ending != (election.Ending{}) {
		t.Fatalf("leads, on record is %+v", led)
	}
	s.pass(testTiming.Heartbeat)
	s.hear("b", ack(last[election.Heartbeat](s, "b")))
	if now := row(); now.Until <= led.Until || now.Until != s.status(election.Default).ValidUntil {
		t.Fatalf("renewed, on record is %+v", now)
	}
	s.step(election.Transfer{Election: election.Default, To: "b"})
	if now := row(); now.Term != 1 || now.Ending != (election.Ending{Reason: election.ReasonTransferred, To: "b", StopBy: s.withdrawn[0].StopBy}) {
		t.Fatalf("hands over, on record is %+v", now)
	}
	s.step(election.Stopped{Election: election.Default, Term: 1})
	if now := row(); now != (election.Authority{Election: election.Default, Highest: 1, Priority: 100}) {
		t.Fatalf("released, on record is %+v", now)
	}
}

// A row of an election that is forgotten goes, and no later election asks for its terms.
func TestK1AForgottenElectionLeavesItsTerms(t *testing.T) {
	s := newSolo(t, nil)
	s.elect("jobs")
	s.step(election.Withdraw{Election: "jobs"})
	s.step(election.Stopped{Election: "jobs", Term: 1})
	if row := rowOf(s.past.LifeRecord, "jobs"); row.Highest != 1 {
		t.Fatalf("on record is %+v", row)
	}
	s.pass(5 * testTiming.Lease)
	if len(s.past.Rows) != 0 || s.past.Spent != 1 || s.past.Retired != 1 {
		t.Fatalf("five leases later, on record is %+v", s.past.LifeRecord)
	}
	n := s.dies(nil).meets()
	n.campaign("jobs")
	n.answerRound()
	if got := asked(n.sent, "jobs"); got != 2 {
		t.Fatalf("the next life asks for term %d, want 2", got)
	}
}

func TestK4TheNextLifeLeadsOnAsIfNothingHadBeen(t *testing.T) {
	s := newSolo(t, nil).leader()
	before := s.status(election.Default)
	s.now = s.now.Add(10 * time.Millisecond)
	n := s.dies(func(cfg *Config, _ *election.Past) { cfg.JoinedAt = 'z' })
	now := n.status(election.Default)
	if now.State != Leading || now.Term != before.Term || now.ValidUntil != before.ValidUntil || now.Leader != soloSelf {
		t.Fatalf("led %+v; before its first step the next life shows %+v", before, now)
	}
	n.meets()
	if len(n.announced) != 0 || len(n.withdrawn) != 0 || n.past.Rows[0] != s.past.Rows[0] {
		t.Fatalf("announced %+v, withdrew %+v, on record is %+v", n.announced, n.withdrawn, n.past.Rows)
	}
	h := last[election.Heartbeat](n, "b")
	if h.Send <= election.SendID(n.cfg.firstNumber()) || h.Claims[0].Term != before.Term {
		t.Fatalf("beats with %+v", h)
	}
	n.hear("b", ack(h))
	if got := n.status(election.Default).ValidUntil; got != n.now.Add(ownLease) {
		t.Fatalf("renewed until %d, want %d", got, n.now.Add(ownLease))
	}
	if c := n.e.contests.get(election.Default); c.Field(c).Self.JoinedAt != 'a' {
		t.Fatalf("its rank is %+v, want the first life's", c.Field(c).Self)
	}
}

func TestK4aTheNextLifeLeadsNoLongerThanOnRecord(t *testing.T) {
	s := newSolo(t, nil).leader()
	h := last[election.Heartbeat](s, "b")
	r := s.request(s.sent, "b", election.Default)
	until := s.status(election.Default).ValidUntil
	s.now = s.now.Add(100 * time.Millisecond)
	n := s.dies(nil).meets()
	n.hear("b", ack(h)) // to the former life
	n.hear("c", ack(h))
	n.hear("c", grant(r))
	for len(n.withdrawn) == 0 && n.now < until {
		if got := n.status(election.Default); got.State != Leading || got.ValidUntil != until {
			t.Fatalf("%+v, want that it leads until %d", got, until)
		}
		n.pass(testTiming.Heartbeat / 10)
	}
	if len(n.withdrawn) != 1 || n.now >= until || n.withdrawn[0].StopBy != until || n.withdrawn[0].Reason != election.ReasonLeaseExpired {
		t.Fatalf("at %d withdrew %+v, want it before %d", n.now, n.withdrawn, until)
	}
}

// The former life had asked for a higher term while it led: the late vote for it must not
// have it released, for then another agent gets the votes while the programs act.
func TestK4bNothingIsReleasedWhileSomebodyMayAct(t *testing.T) {
	s := newSolo(t, nil).leader()
	led := s.request(s.sent, "b", election.Default)
	s.step(election.Overtake{Election: election.Default})
	higher := s.request(s.sent, "b", election.Default)
	if higher.Term != led.Term+1 {
		t.Fatalf("asks for term %d", higher.Term)
	}
	n := s.dies(nil).meets()
	n.hear("b", grant(higher))
	n.hear("c", grant(led))
	if got := releases(n.sent); len(got) != 0 || !n.leads(election.Default) {
		t.Fatalf("released %+v", got)
	}
	n.step(election.Resign{Election: election.Default})
	n.hear("b", grant(higher))
	n.pass(testTiming.Heartbeat)
	if got := releases(n.sent); len(got) != 0 || len(n.withdrawn) != 1 {
		t.Fatalf("released %+v, withdrew %+v", got, n.withdrawn)
	}
	n.step(election.Stopped{Election: election.Default, Term: led.Term})
	if got := releases(n.sent); len(got) == 0 || got[len(got)-1].Term != led.Term {
		t.Fatalf("its programs have stopped, and it released %+v", got)
	}
}

func TestK4cTheNextLifeAsksForNoTermAgain(t *testing.T) {
	for name, end := range map[string]func(*solo){
		"a nominee": func(s *solo) { s.campaign(election.Default); s.answerRound() },
		"a leader":  func(s *solo) { s.leader() },
		"a leader that overtakes itself": func(s *solo) {
			s.leader()
			s.step(election.Overtake{Election: election.Default})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSolo(t, nil)
			end(s)
			former := asked(s.sent, election.Default)
			n := s.dies(nil).meets()
			if n.leads(election.Default) {
				h := last[election.Heartbeat](n, "b")
				for _, p := range []election.PeerID{"b", "c"} {
					n.hear(p, ack(h, election.Nack{Election: election.Default, Term: former + 1})) // by another holder's bid
				}
			} else {
				n.campaign(election.Default)
				n.answerRound()
			}
			n.pass(testTiming.Heartbeat)
			if got := asked(n.sent, election.Default); got <= former {
				t.Fatalf("asks for term %d after %d", got, former)
			}
		})
	}
}

// No open attempt is continued: votes that the former life asked for elect nobody.
func TestK4cVotesForTheFormerLifesAttemptCountForNothing(t *testing.T) {
	s := newSolo(t, nil)
	s.campaign(election.Default)
	s.answerRound()
	r := s.request(s.sent, "b", election.Default)
	n := s.dies(nil).meets()
	n.hear("b", grant(r))
	n.hear("c", grant(r))
	if n.leads(election.Default) || len(n.announced) != 0 {
		t.Fatalf("leads by votes for the former life: %+v", n.announced)
	}
	for _, p := range []election.PeerID{"b", "c"} { // nobody acted under it, so they need not keep it
		if got := sentTo[election.Release](n.sent, p); len(got) != 1 || got[0].Term != r.Term {
			t.Errorf("released %+v to %s", got, p)
		}
	}
}

func TestK4dAHigherTermIsTakenWhenAskedFor(t *testing.T) {
	n := newSolo(t, nil).leader().dies(nil)
	n.step(election.Overtake{Election: election.Default})
	n.meets()
	n.pass(testTiming.Heartbeat)
	r := n.request(n.sent, "b", election.Default)
	if r.Term != 2 || !n.leads(election.Default) {
		t.Fatalf("asks for term %d", r.Term)
	}
	n.hear("b", grant(r))
	if got := n.status(election.Default); got.Term != 2 || got.State != Leading || len(n.announced) != 1 || n.announced[0].Event != election.NewTerm {
		t.Fatalf("%+v, announced %+v; want that it leads in term 2", got, n.announced)
	}
	if len(n.withdrawn)+len(releases(n.sent)) != 0 {
		t.Fatalf("withdrew %+v, released %+v", n.withdrawn, releases(n.sent))
	}
	n.pass(testTiming.Heartbeat)
	n.hear("b", ack(last[election.Heartbeat](n, "b")))
	n.pass(testTiming.Heartbeat)
	if got := asked(n.sent, election.Default); got != 2 {
		t.Fatalf("goes on asking, for term %d", got)
	}
}

func TestK4dACandidacyThatNobodyClaimsEndsByTheDeadlineThatWasTold(t *testing.T) {
	for name, claimed := range map[string]bool{"claimed": true, "not claimed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSolo(t, nil).leader()
			until := s.status(election.Default).ValidUntil
			n := s.dies(nil).meets()
			if claimed {
				n.campaign(election.Default)
			}
			for n.now < until.Add(testTiming.Heartbeat) {
				n.hear("b", ack(last[election.Heartbeat](n, "b")))
				n.pass(testTiming.Heartbeat / 2)
				if len(n.withdrawn) > 0 && n.now < until {
					t.Fatalf("withdrew %+v at %d, before %d", n.withdrawn, n.now, until)
				}
			}
			if stands := n.e.contests.get(election.Default).Stands(); stands != claimed || n.leads(election.Default) != claimed {
				t.Fatalf("stands: %t, leads: %t", stands, n.leads(election.Default))
			}
			if !claimed && (len(n.withdrawn) != 1 || n.withdrawn[0].Reason != election.ReasonWithdrawn) {
				t.Fatalf("withdrew %+v", n.withdrawn)
			}
		})
	}
}

// With another lease than that on record it takes a term of its own, and until then counts
// with the one that the voters have promised.
func TestK4eAnotherLeaseTakesAnotherTerm(t *testing.T) {
	for name, own := range map[string]time.Duration{"longer": 2 * testTiming.Lease, "shorter": testTiming.Lease * 3 / 4} {
		t.Run(name, func(t *testing.T) {
			n := newSolo(t, nil).leader().dies(func(cfg *Config, _ *election.Past) { cfg.Timing.Lease = own }).meets()
			n.hear("b", ack(last[election.Heartbeat](n, "b")))
			if got, want := n.status(election.Default).ValidUntil, n.now.Add(ownLease); got != want {
				t.Fatalf("renewed until %d, want %d", got, want)
			}
			n.pass(testTiming.Heartbeat)
			r := n.request(n.sent, "b", election.Default)
			n.hear("b", grant(r))
			if got := n.status(election.Default); r.Term != 2 || r.Lease != own || own > testTiming.Lease && got.Term != 2 {
				t.Fatalf("asked for term %d with %s, and shows %+v", r.Term, r.Lease, got)
			}
		})
	}
}

func TestK4TheNextLifeGoesOnHandingOver(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.step(election.Transfer{Election: election.Default, To: "c"})
	told := s.withdrawn[0]
	n := s.dies(nil)
	if n.leads(election.Default) || n.status(election.Default).Leader != (election.Holder{}) {
		t.Fatalf("shows %+v", n.status(election.Default))
	}
	n.meets()
	if len(n.withdrawn) != 1 || n.withdrawn[0] != told || len(n.announced) != 1 || n.announced[0].Event != election.NoLeader {
		t.Fatalf("withdrew %+v, announced %+v; the former life may have died before it did", n.withdrawn, n.announced)
	}
	if len(releases(n.sent)) != 0 {
		t.Fatalf("released %+v", releases(n.sent))
	}
	n.step(election.Stopped{Election: election.Default, Term: told.Term})
	if got := sentTo[election.Release](n.sent, "b"); len(got) != 1 || got[0].Target != "c" || got[0].Term != told.Term {
		t.Fatalf("released %+v, want for c", got)
	}
}

// A release that reaches nobody is lost, and the successor would wait for the lease to end.
func TestTheNextLifeReleasesToThoseThatConnectLater(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.step(election.Transfer{Election: election.Default, To: "c"})
	told := s.withdrawn[0]
	n := s.dies(nil)
	n.step(election.Tick{})
	n.step(election.Stopped{Election: election.Default, Term: told.Term})
	n.meets()
	for _, p := range []election.PeerID{"b", "c"} {
		if got := sentTo[election.Release](n.sent, p); len(got) != 1 || got[0].Term != told.Term {
			t.Errorf("released %+v to %s", got, p)
		}
	}
	before := len(releases(n.sent))
	n.now = told.StopBy
	n.meets()
	if after := len(releases(n.sent)); after != before {
		t.Errorf("released %d times when the lease had ended", after-before)
	}
}

func TestK4WhatHasEndedMeanwhileIsReleasedAndNotLed(t *testing.T) {
	for name, end := range map[string]func(*solo){
		"led":         func(*solo) {},
		"handed over": func(s *solo) { s.step(election.Resign{Election: election.Default}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSolo(t, nil).leader()
			end(s)
			s.now = s.past.Rows[0].Until
			n := s.dies(nil)
			if _, leads := n.status(election.Default).LeaderAt(n.now); leads {
				t.Fatalf("shows %+v", n.status(election.Default))
			}
			n.meets()
			if row := rowOf(n.past.LifeRecord, election.Default); n.leads(election.Default) || row.Term != 0 || len(n.withdrawn) != 1 {
				t.Fatalf("withdrew %+v, on record is %+v", n.withdrawn, row)
			}
			if g := n.e.ledger.State().Grants[election.Default]; g.Released != (g.Holder == soloSelf) {
				t.Fatalf("its own voter keeps %+v", g)
			}
		})
	}
}

func TestK4WithoutQuorumTheNextLifeLeadsOn(t *testing.T) {
	advisory := func(c *Config, st *election.State) { c.Quorum, st.Roster = false, nil }
	s := newSolo(t, advisory)
	s.view.Members = s.view.Members[:1]
	s.step(election.ViewChanged{View: s.view})
	s.campaign(election.Default)
	s.pass(4 * testTiming.Heartbeat)
	if !s.leads(election.Default) || s.past.Rows[0].Until != election.Never {
		t.Fatalf("on record is %+v", s.past.Rows)
	}
	s.now = s.now.Add(100 * testTiming.Lease)
	n := s.dies(nil)
	n.campaign(election.Default)
	n.pass(testTiming.Lease)
	if got := n.status(election.Default); got.State != Leading || got.Term != s.past.Rows[0].Term {
		t.Fatalf("%+v", got)
	}
	n.step(election.Overtake{Election: election.Default})
	if got := n.status(election.Default); got.State != Leading || got.Term != s.past.Rows[0].Term+1 || n.disk.Seen[election.Default] != got.Term {
		t.Fatalf("%+v, on disk %+v", got, n.disk.Seen)
	}
	q := s.dies(func(c *Config, _ *election.Past) { c.Quorum = true })
	q.step(election.Tick{})
	if q.leads(election.Default) {
		t.Fatal("leads with quorum what no majority has granted")
	}
}

// A driver that remembers nothing must not drive the former life's ballot again.
func TestK8TheRosterElectionIsNotCarriedOn(t *testing.T) {
	s := newLone(t, trioState())
	s.step(election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 1})
	s.pass(testTiming.Heartbeat)
	r := s.request(s.sent, "b", election.RosterElection)
	s.hear("b", grant(r))
	if ballot, _ := s.e.Drives(); ballot != r.Term {
		t.Fatalf("drives in %d, want %d", ballot, r.Term)
	}
	if row := rowOf(s.past.LifeRecord, election.RosterElection); row != (election.Authority{Election: election.RosterElection, Highest: r.Term}) {
		t.Fatalf("on record is %+v", row)
	}
	n := s.dies(func(_ *Config, past *election.Past) {
		for i := range past.Rows { // as a faulty life may have written it
			past.Rows[i].Term, past.Rows[i].Until = r.Term, s.now.Add(testTiming.Lease)
		}
	}).meets()
	if ballot, _ := n.e.Drives(); ballot != 0 {
		t.Fatalf("drives the ballot %d of its former life", ballot)
	}
	n.step(election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 2})
	n.pass(4 * testTiming.Lease)
	if got := asked(n.sent, election.RosterElection); got <= r.Term {
		t.Fatalf("asks for ballot %d after %d", got, r.Term)
	}
}

func TestV5AVoterRenewsItsOwnLineageAndHoldsTheOthers(t *testing.T) {
	s := newSolo(t, nil).leader()
	other := election.VoteRequest{Election: "jobs", Term: 1, Holder: election.Holder{Peer: "b", Lineage: 1}, Rank: election.Rank{Peer: "b"},
		Lease: testTiming.Lease, Send: 1, Roster: *soloRoster}
	s.hear("b", other)
	n := s.dies(nil).meets()
	if nacks := n.e.voter.Renew(n.now, "a", last[election.Heartbeat](n, "b")); len(nacks) != 0 {
		t.Fatalf("its own voter nacks %+v", nacks)
	}
	stranger := other
	stranger.Holder, stranger.Rank, stranger.Term = election.Holder{Peer: "c", Lineage: 1}, election.Rank{Peer: "c"}, 2
	n.hear("c", stranger)
	n.hear("b", other)
	if len(sentTo[election.VoteGrant](n.sent, "c")) != 0 || len(sentTo[election.VoteGrant](n.sent, "b")) != 1 {
		t.Fatalf("sent %+v, want a vote for b alone", n.sent)
	}
}

func TestAPastThatIsNotOfThisLineageIsRefused(t *testing.T) {
	s := newSolo(t, nil).leader()
	for name, spoil := range map[string]func(*Config, *election.Past){
		"of another lineage":              func(_ *Config, p *election.Past) { p.ID++ },
		"of a later life":                 func(_ *Config, p *election.Past) { p.Life = 9 },
		"with a wrong row":                func(_ *Config, p *election.Past) { p.Rows[0].Highest = 0 },
		"of more lives than there can be": func(c *Config, _ *election.Past) { c.Life = 1 << 60 },
	} {
		cfg, past := s.cfg, s.past
		cfg.Life++
		past.Rows = slices.Clone(past.Rows)
		spoil(&cfg, &past)
		if _, err := New(cfg, s.disk, &past, s.now, rand.New(rand.NewPCG(1, 2))); err == nil {
			t.Errorf("a past %s was taken over", name)
		}
	}
}
