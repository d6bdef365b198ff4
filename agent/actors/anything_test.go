package actors

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// stage plays the elector of a single agent, and its programs.
type stage struct {
	t      *rapid.T
	r      *Registry
	now    election.Instant
	stands bool
	term   election.Term // the term that the elector leads, or has stepped down from
	until  election.Instant
	leads  bool
	free   bool // the term is released
	all    []*program

	lives    int
	ids      int
	priority int                        // the priority that the elector has
	actor    record.Program             // the program on record
	told     map[election.Term]*program // by term: the only program that was sent it (K4d)
}

type program struct {
	k      *Candidacy
	until  election.Instant // it may act until then
	term   election.Term
	gave   []election.Term // receipts
	late   bool            // it reads only now and then
	closed bool
	dead   bool
	cut    bool            // its agent died
	named  []election.Term // receipts that named their term
	pid    int32
}

// live begins a life of the agent.
func (s *stage) live(past ...Past) {
	s.lives++
	s.r = New(Config{Settings: Settings{Priority: 100, Preempt: true, PreemptDelay: delay}, Step: 100, StepOfMany: 300, Past: past,
		NewID:  func() string { s.ids++; return fmt.Sprint("k", s.ids) },
		Record: func(_ election.Name, p record.Program) { s.actor = p }})
}

// dieAndLive ends a life of the agent, and begins the next one from what is on record.
func (s *stage) dieAndLive() {
	for _, p := range s.all {
		p.cut = true // the lines that it has not read are lost
	}
	past := Past{Authority: election.Authority{Election: pay, Highest: s.term}, Program: s.actor}
	if s.term > 0 && !s.free {
		past.Term, past.Until, past.Priority = s.term, s.until, s.priority
		if !s.leads {
			past.Ending = election.Ending{Reason: election.ReasonResigned, StopBy: s.until}
		}
	}
	s.stands = s.leads && s.priority > 0
	s.live(past)
	if past.Ending.Reason != "" {
		s.withdraw(past.Ending.Reason)
	}
}

// resume lets a program try to resume.
func (s *stage) resume(p *program) {
	if !p.cut || p.dead || p.term == 0 {
		return
	}
	gave := slices.Contains(p.named, p.term)
	k, err := s.r.Resume(s.now, Resumption{ID: p.k.ID(), Term: p.term, Program: record.Program{PID: p.pid, Started: 1, Sockets: [record.MaxSockets]uint64{uint64(s.lives)}},
		May: func(election.Name) error { return nil }, Held: func(s []uint64) []uint64 { return s }})
	if err == nil && gave {
		s.t.Fatalf("%s resumes in term %d, for which it gave its receipt", p.k.id, p.term)
	}
	if err == nil {
		p.k, p.cut, p.closed = k, false, false
	}
}

func (s *stage) acts(p *program) bool { return !p.dead && s.now < p.until }

// turn gives the elector its inputs, and has the programs read their lines.
func (s *stage) turn() {
	for inputs := s.r.Take(); len(inputs) > 0; inputs = s.r.Take() {
		for _, in := range inputs {
			s.input(in)
		}
	}
	for _, p := range s.all {
		if !p.late {
			s.catchUp(p)
		}
	}
}

func (s *stage) catchUp(p *program) {
	lines, _ := p.k.Take()
	for _, l := range lines {
		s.read(p, l)
	}
}

func (s *stage) input(in election.Input) {
	switch in := in.(type) {
	case election.Campaign:
		s.stands, s.priority = true, in.Priority
	case election.Withdraw:
		s.stands, s.priority = in.Remaining > 0, in.Remaining
		if s.leads {
			s.withdraw(election.ReasonWithdrawn)
		}
		if in.Stopped == s.term && !s.leads && s.term > 0 {
			s.release()
		}
	case election.Stopped:
		if in.Term == s.term && !s.leads {
			s.release()
		}
	}
}

func (s *stage) withdraw(why election.Reason) {
	s.leads = false
	s.r.Withdraw(election.Withdrawal{Election: pay, Term: s.term, StopBy: s.until, Reason: why}, nil)
}

// release gives the term back. No program may act any more (H6).
func (s *stage) release() {
	for _, p := range s.all {
		if s.acts(p) { // under this term, or under an older one if it has not read of the rise
			s.t.Fatalf("term %d is given back while %s acts until %d, now %d", s.term, p.k.id, p.until, s.now)
		}
	}
	s.until, s.free = s.now, true
}

func (s *stage) read(p *program, l api.CampaignEvent) {
	switch l.Type {
	case api.CampaignElected, api.CampaignRenewed:
		if slices.Contains(p.gave, election.Term(l.Term)) {
			return // it has given its receipt for this term
		}
		if was := s.told[election.Term(l.Term)]; was != nil && was != p {
			s.t.Fatalf("term %d was sent to %s and to %s", l.Term, was.k.id, p.k.id)
		}
		s.told[election.Term(l.Term)] = p
		p.term, p.until = election.Term(l.Term), election.Instant(l.ValidUntilBoottimeNS)
	case api.CampaignRevoked: // it acts until it gives its receipt
	}
}

// Whatever programs do, a term is given back only once no program acts under it, and no program is elected
// while another one acts. In the end the registry is empty.
func TestNoTermIsGivenBackWhileAProgramActs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &stage{t: t, told: map[election.Term]*program{}}
		s.live()
		act := func(f func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				s.now += election.Instant(rapid.IntRange(0, 60).Draw(t, "later"))
				s.r.Advance(s.now)
				f(t)
				s.turn()
			}
		}
		one := func(f func(*rapid.T, *program)) func(*rapid.T) { // calls f with one of the programs, if there are any
			return act(func(t *rapid.T) {
				if len(s.all) > 0 {
					f(t, rapid.SampledFrom(s.all).Draw(t, "program"))
				}
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"stand": act(func(t *rapid.T) {
				p := rapid.IntRange(0, 3).Draw(t, "priority")
				pid := int32(len(s.all) + 1)
				if k, err := s.r.Stand(s.now, Request{Election: pay, Priority: &p, PID: pid,
					Program: record.Program{PID: pid, Started: 1, Sockets: [record.MaxSockets]uint64{uint64(s.lives)}}}); err == nil {
					s.all = append(s.all, &program{k: k, pid: pid, late: rapid.Bool().Draw(t, "late")})
				}
			}),
			"lead": act(func(t *rapid.T) {
				if s.stands && !s.leads && s.now >= s.until {
					s.leads, s.free, s.term, s.until = true, false, s.term+1, s.now+300
					s.r.Lead(s.now, pay, s.term, s.until, nil, nil)
				}
			}),
			"renew": act(func(t *rapid.T) {
				if s.leads {
					s.until = s.now + 300
					s.r.Prolong(pay, s.term, s.until)
				}
			}),
			"resign": act(func(t *rapid.T) {
				if s.leads {
					s.withdraw(election.ReasonResigned)
				}
			}),
			"stop": one(func(t *rapid.T, p *program) { // the program stops acting and gives its receipt
				if p.term > 0 && !p.dead {
					p.until = min(p.until, s.now)
					p.gave = append(p.gave, p.term)
					term := p.term
					if !p.late && rapid.Bool().Draw(t, "termless") { // a program that has read everything may omit the term
						term = 0
					} else if term == s.term { // the term may have risen; then the receipt is late, and ends nothing
						p.named = append(p.named, term)
					}
					_ = s.r.Receipt(p.k.ID(), pay, term, "", anybody)
				}
			}),
			"agent dies": act(func(*rapid.T) { s.dieAndLive() }),
			"resume":     one(func(_ *rapid.T, p *program) { s.resume(p) }),
			"read":       one(func(_ *rapid.T, p *program) { s.catchUp(p) }),
			"rise": act(func(t *rapid.T) {
				if s.leads {
					s.term, s.until = s.term+1, s.now+300
					s.r.Rise(pay, s.term, s.until, nil)
				}
			}),
			"repeat": one(func(_ *rapid.T, p *program) { // a receipt comes once more, or late
				for _, term := range p.gave {
					_ = s.r.Receipt(p.k.ID(), pay, term, "", anybody)
				}
			}),
			"close": one(func(_ *rapid.T, p *program) { // its connection ends, and it may go on acting
				p.closed = true // the next life of an agent that died does not know this
				s.r.End(p.k.ID())
			}),
			"die": one(func(_ *rapid.T, p *program) {
				p.closed, p.dead = true, true
				s.r.End(p.k.ID())
				s.turn()
				if s.r.Gone(p.k.ID()); p.cut {
					s.r.Dead(p.k.ID())
				}
			}),
			"": func(t *rapid.T) { s.check(t) },
		})
		for _, p := range s.all {
			s.r.End(p.k.ID())
			s.turn()
		}
		for range 2 { // the second round ends what the first one has given up
			s.now += 1000
			s.r.Advance(s.now)
			s.turn()
		}
		if n := len(s.r.byID) + len(s.r.races) + len(s.r.waits) + len(s.r.rivals) + len(s.r.absent); n != 0 {
			t.Errorf("%d things are left behind", n)
		}
	})
}

func (s *stage) check(t *rapid.T) {
	acting := 0
	for _, p := range s.all {
		if s.acts(p) {
			acting++
		}
	}
	if acting > 1 {
		t.Fatalf("%d programs act at %d", acting, s.now)
	}
}
