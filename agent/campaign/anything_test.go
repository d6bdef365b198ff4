package campaign

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// stage is an elector of one agent alone, and programs that obey: what each was
// told, and what it has said.
type stage struct {
	t      *rapid.T
	r      *Registry
	now    election.Instant
	stands bool
	term   election.Term // led, or withdrawn and not released
	until  election.Instant
	leads  bool
	all    []*program
}

type program struct {
	k      *Candidacy
	until  election.Instant // it may act until then
	term   election.Term
	gave   []election.Term // receipts
	late   bool            // it reads now and then
	closed bool
	dead   bool
}

func (s *stage) acts(p *program) bool { return !p.dead && s.now < p.until }

// turn carries out what the elector is told, and has the programs read.
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
		s.stands = true
	case election.Withdraw:
		s.stands = in.Remaining > 0
		if s.leads {
			s.withdraw(election.ReasonWithdrawn)
		}
	case election.Stopped:
		if in.Term == s.term && !s.leads {
			s.release()
		}
	}
}

func (s *stage) withdraw(why election.Reason) {
	s.leads = false
	s.r.Withdraw(election.Withdrawal{Election: pay, Term: s.term, StopBy: s.until, Reason: why}, false)
}

// release gives the term back: nobody may act under it (H6).
func (s *stage) release() {
	for _, p := range s.all {
		if s.acts(p) { // under that one, or one that it has not read the rise of
			s.t.Fatalf("term %d is given back while %s acts until %d, now %d", s.term, p.k.id, p.until, s.now)
		}
	}
	s.until = s.now
}

func (s *stage) read(p *program, l api.CampaignEvent) {
	switch l.Type {
	case api.CampaignElected, api.CampaignRenewed:
		if slices.Contains(p.gave, election.Term(l.Term)) {
			return // it said that it has stopped under that one
		}
		p.term, p.until = election.Term(l.Term), election.Instant(l.ValidUntilBoottimeNS)
	case api.CampaignRevoked: // it goes on until it says that it has stopped
	}
}

// Whatever programs do, and in whatever order: a term is given back only once
// nobody acts under it, nobody is elected while another one acts, and nothing
// is left behind in the end.
func TestNoTermIsGivenBackWhileAProgramActs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &stage{t: t, r: newRegistry(false)}
		act := func(f func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				s.now += election.Instant(rapid.IntRange(0, 60).Draw(t, "later"))
				s.r.Advance(s.now)
				f(t)
				s.turn()
			}
		}
		one := func(f func(*rapid.T, *program)) func(*rapid.T) { // of those that stand, if any do
			return act(func(t *rapid.T) {
				if len(s.all) > 0 {
					f(t, rapid.SampledFrom(s.all).Draw(t, "program"))
				}
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"stand": act(func(t *rapid.T) {
				p := rapid.IntRange(0, 3).Draw(t, "priority")
				if k, err := s.r.Stand(s.now, Request{Election: pay, Priority: &p}); err == nil {
					s.all = append(s.all, &program{k: k, late: rapid.Bool().Draw(t, "late")})
				}
			}),
			"lead": act(func(t *rapid.T) {
				if s.stands && !s.leads && s.now >= s.until {
					s.leads, s.term, s.until = true, s.term+1, s.now+300
					s.r.Lead(s.now, pay, s.term, s.until)
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
			"stop": one(func(t *rapid.T, p *program) { // the program stops acting and says so
				if p.term > 0 && !p.dead {
					p.until = min(p.until, s.now)
					p.gave = append(p.gave, p.term)
					term := p.term
					if !p.late && rapid.Bool().Draw(t, "termless") { // who has read everything may leave it out
						term = 0
					}
					_ = s.r.Receipt(p.k.ID(), term, anybody)
				}
			}),
			"read": one(func(_ *rapid.T, p *program) { s.catchUp(p) }),
			"rise": act(func(t *rapid.T) {
				if s.leads {
					s.term, s.until = s.term+1, s.now+300
					s.r.Rise(pay, s.term, s.until)
				}
			}),
			"repeat": one(func(_ *rapid.T, p *program) { // a receipt comes once more, or late
				for _, term := range p.gave {
					_ = s.r.Receipt(p.k.ID(), term, anybody)
				}
			}),
			"close": one(func(_ *rapid.T, p *program) { // and may go on
				p.closed = true
				s.r.End(p.k.ID())
			}),
			"die": one(func(_ *rapid.T, p *program) {
				p.closed, p.dead = true, true
				s.r.End(p.k.ID())
				s.turn()
				s.r.Gone(p.k.ID())
			}),
			"": func(t *rapid.T) { s.check(t) },
		})
		for _, p := range s.all {
			s.r.End(p.k.ID())
			s.turn()
		}
		s.now += 1000
		s.r.Advance(s.now)
		if n := len(s.r.byID) + len(s.r.races) + len(s.r.waits) + len(s.r.rivals); n != 0 {
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
