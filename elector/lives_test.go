package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// dies ends a's life, and starts the next life with its record. No peer is connected yet.
func (s *solo) dies(edit func(*election.Config, *election.Past)) *solo {
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

// asked is the highest term in any Vote Request that was sent.
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

// The row of a forgotten election is removed, but no later election asks for its terms again.
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
	n := s.dies(func(cfg *election.Config, _ *election.Past) { cfg.JoinedAt = 'z' })
	now := n.status(election.Default)
	if now.State != Leading || now.Term != before.Term || now.ValidUntil != before.ValidUntil || now.Leader != soloSelf {
		t.Fatalf("led %+v; before its first step the next life shows %+v", before, now)
	}
	n.meets()
	if len(n.announced) != 0 || len(n.withdrawn) != 0 || n.past.Rows[0] != s.past.Rows[0] {
		t.Fatalf("announced %+v, withdrew %+v, on record is %+v", n.announced, n.withdrawn, n.past.Rows)
	}
	h := last[election.Heartbeat](n, "b")
	if h.Send <= election.SendID(n.cfg.FirstNumber()) || h.Claims[0].Term != before.Term {
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

// The other agents learn of a renewal before the rest of the former life's lease expires.
func TestTheFirstRenewalOfALifeIsPassedOnAtOnce(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.pass(testTiming.Lease - testTiming.Heartbeat) // nothing was renewed
	n := s.dies(nil).meets()
	left := last[election.Heartbeat](n, "c").Claims[0].Remaining
	beat := last[election.Heartbeat](n, "b")
	n.take()
	n.hear("b", ack(beat))
	again := sentTo[election.Heartbeat](n.take(), "c")
	if len(again) != 1 || again[0].Claims[0].Remaining < left+testTiming.Lease/2 {
		t.Fatalf("%s were left; after the renewal c is sent %+v", left, again)
	}
	n.hear("c", ack(again[0]))
	if more := sentTo[election.Heartbeat](n.take(), "b"); len(more) != 0 {
		t.Errorf("and again: %+v", more)
	}
}

func TestK4aTheNextLifeLeadsNoLongerThanOnRecord(t *testing.T) {
	s := newSolo(t, nil).leader()
	h := last[election.Heartbeat](s, "b")
	r := s.request(s.sent, "b", election.Default)
	until := s.status(election.Default).ValidUntil
	s.now = s.now.Add(100 * time.Millisecond)
	n := s.dies(nil).meets()
	n.hear("b", ack(h)) // an answer to the former life
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

// The former life had asked for a higher term while it led. When the late vote for it comes, this life
// must not release the higher term: another agent would get the votes while the programs still act.
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
					n.hear(p, ack(h, election.Nack{Election: election.Default, Term: former + 1})) // another holder had made a bid
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

// Votes that the former life asked for elect no agent: its open attempts are not continued.
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
	for _, p := range []election.PeerID{"b", "c"} { // nothing acted under the term, so they need not keep it
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

// With a lease other than the one on record, the next life takes a new term. Until then it counts
// with the lease that the voters have promised.
func TestK4eAnotherLeaseTakesAnotherTerm(t *testing.T) {
	for name, own := range map[string]time.Duration{"longer": 2 * testTiming.Lease, "shorter": testTiming.Lease * 3 / 4} {
		t.Run(name, func(t *testing.T) {
			n := newSolo(t, nil).leader().dies(func(cfg *election.Config, _ *election.Past) { cfg.Lease = own }).meets()
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

// If the release reached no peer, the successor would have to wait for the lease to end.
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
