package actors

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// theActor is the program that the former life elected in term 4.
func theActor() record.Program {
	return record.Program{Campaign: "k1", UID: 7, PID: 300, Started: 11, Space: 5, Priority: 100, Told: 4, Sockets: [record.MaxSockets]uint64{21}}
}

// next returns the registry of the next life, which leads payments in term 4 until 1000, and
// what it puts on record.
func next(p record.Program, change ...func(*Past)) (*Registry, *[]record.Program) {
	past := Past{Authority: election.Authority{Election: pay, Highest: 4, Term: 4, Until: 1000, Priority: 100}, Program: p}
	for _, c := range change {
		c(&past)
	}
	n, recorded := 10, new([]record.Program)
	return New(Config{Settings: Settings{Priority: 100, Preempt: true, PreemptDelay: delay}, Step: 100, StepOfMany: 300, Past: []Past{past},
		NewID:  func() string { n++; return fmt.Sprint("k", n) },
		Record: func(_ election.Name, p record.Program) { *recorded = append(*recorded, p) }}), recorded
}

// back returns the resumption of theActor.
func back(change ...func(*Resumption)) Resumption {
	q := Resumption{ID: "k1", Term: 4, UID: 7, May: func(election.Name) error { return nil }, Held: func(s []uint64) []uint64 { return s }}
	q.Program = record.Program{UID: 7, PID: 300, Started: 11, Space: 5, Sockets: [record.MaxSockets]uint64{22}}
	for _, c := range change {
		c(&q)
	}
	return q
}

func TestAProgramResumesInItsTermAndGoesOn(t *testing.T) {
	r, recorded := next(theActor())
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
	if programs, until := r.Absent(); len(programs) != 1 || programs[0] != theActor() || until[0] != 1000 || r.WakeAt() != 1000 {
		t.Errorf("absent are %v until %v", programs, until)
	}
	if all := r.List(); len(all) != 1 || all[0].Campaign != "k1" || all[0].Term != 4 {
		t.Errorf("listed are %+v", all)
	}
	r.Lead(0, pay, 4, 1000, nil, nil) // the leadership is announced again
	r.Prolong(pay, 4, 1500)
	k, err := r.Resume(900, back())
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, k, "renewed 4 until 1500")
	want := theActor()
	want.Sockets[1] = 22
	if len(*recorded) != 1 || (*recorded)[0] != want {
		t.Errorf("on record came %+v", *recorded)
	}
	if earlier, provable := k.Sockets(); !provable || !slices.Equal(earlier, []uint64{21}) {
		t.Errorf("earlier connections %v, provable %t", earlier, provable)
	}
	r.Dead("k1") // the proof is about the former connection only
	r.Advance(1000)
	r.Prolong(pay, 4, 2000)
	wantLines(t, k, "renewed 4 until 2000")
	withdrawn(r, 4, 2000, election.ReasonResigned)
	wantLines(t, k, "revoked 4 until 2000 (resigned)")
	wantInputs(t, r)
	if err := r.Receipt("k1", pay, 4, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, stopped(4))
	if last := (*recorded)[len(*recorded)-1]; last.Stopped != 4 {
		t.Errorf("on record is %+v", last)
	}
	r.Lead(3000, pay, 6, 4000, nil, nil)
	wantLines(t, k, "elected 6 until 4000")
}

// The next life goes on from what the former life has recorded.
func TestWhatIsRecordedOfAProgram(t *testing.T) {
	var recorded record.Program
	r := New(Config{Settings: Settings{Priority: 100}, NewID: func() string { return "k1" }, Record: func(_ election.Name, p record.Program) { recorded = p }})
	want := theActor()
	want.Priority = 50
	most, identity := 50, theActor()
	identity.Told = 0
	if _, err := r.Stand(0, Request{Election: pay, MaxPriority: &most, UID: 7, PID: 300, Program: identity}); err != nil {
		t.Fatal(err)
	}
	r.Lead(0, pay, 4, 1000, nil, nil)
	if recorded != want {
		t.Errorf("recorded %+v, want %+v", recorded, want)
	}
}

func TestWhoMayNotResume(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		change func(*Resumption)
		before func(*Registry)
		now    election.Instant
	}{
		"another process":         {code: api.CodeForbidden, change: func(q *Resumption) { q.Program.PID++ }},
		"a later one of its PID":  {code: api.CodeForbidden, change: func(q *Resumption) { q.Program.Started++ }},
		"of another namespace":    {code: api.CodeForbidden, change: func(q *Resumption) { q.Program.Space++ }},
		"one that is not known":   {code: api.CodeForbidden, change: func(q *Resumption) { q.Program = record.Program{} }},
		"another user":            {code: api.CodeForbidden, change: func(q *Resumption) { q.UID = 8 }},
		"without the right":       {code: api.CodeForbidden, change: func(q *Resumption) { q.May = func(election.Name) error { return errors.New("no") } }},
		"another ID":              {code: api.CodeNotFound, change: func(q *Resumption) { q.ID = "k2" }},
		"a term never told":       {code: api.CodeNotResumable, change: func(q *Resumption) { q.Term = 5 }},
		"no term":                 {code: api.CodeNotResumable, change: func(q *Resumption) { q.Term = 0 }},
		"at the deadline":         {code: api.CodeNotResumable, now: 1000},
		"after its receipt":       {code: api.CodeNotResumable, before: func(r *Registry) { _ = r.Receipt("k1", pay, 4, "", anybody) }},
		"after one without term":  {code: api.CodeNotResumable, before: func(r *Registry) { _ = r.Receipt("k1", pay, 0, "", anybody) }},
		"twice":                   {code: api.CodeNotResumable, before: func(r *Registry) { _, _ = r.Resume(0, back()) }},
		"after it had closed it":  {code: api.CodeNotResumable, before: func(r *Registry) { _, _ = r.Resume(0, back()); r.End("k1") }},
		"after the proof":         {code: api.CodeNotFound, before: func(r *Registry) { r.Dead("k1") }},
		"when it was given up":    {code: api.CodeNotFound, before: func(r *Registry) { r.Advance(1000) }},
		"when the agent stops":    {code: api.CodeUnavailable, before: func(r *Registry) { r.Close("the agent stops") }},
		"when its revoke ran out": {code: api.CodeNotFound, before: func(r *Registry) { withdrawn(r, 4, 500, election.ReasonResigned); r.Advance(500) }},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := next(theActor())
			if c.before != nil {
				c.before(r)
			}
			q := back()
			if c.change != nil {
				c.change(&q)
			}
			k, err := r.Resume(c.now, q)
			refusal(t, err, c.code)
			if k != nil {
				t.Error("it got its campaign")
			}
		})
	}
}

// The next life may limit priorities in another way.
func TestWhoResumesHasNoHigherPriorityThanIsAllowedNow(t *testing.T) {
	for highest, want := range map[int]int{200: 100, 100: 100, 40: 40} {
		r, _ := next(theActor())
		r.Take()
		k, err := r.Resume(0, back(func(q *Resumption) { q.Ceiling = func(election.Name) *int { return &highest } }))
		if err != nil || k.priority != want {
			t.Fatalf("at most %d: priority %d, %v; want %d", highest, k.priority, err, want)
		}
		asked := slices.Contains(r.Take(), election.Input(election.Campaign{Election: pay, Priority: want}))
		if asked != (want != 100) {
			t.Errorf("at most %d: the elector was given the priority: %t", highest, asked)
		}
	}
	none := 0
	r, _ := next(theActor())
	r.Take()
	if _, err := r.Resume(0, back(func(q *Resumption) { q.Ceiling = func(election.Name) *int { return &none } })); err != nil {
		t.Fatal(err)
	}
	if got := r.Take(); !slices.ContainsFunc(got, func(in election.Input) bool { _, ends := in.(election.Withdraw); return ends }) {
		t.Errorf("who may not lead any more leads on: %v", got)
	}
}

func TestAProgramThatDoesNotResumeIsDoneByItsDeadline(t *testing.T) {
	r, recorded := next(theActor())
	r.Take()
	other := stand(t, r)
	wantInputs(t, r)
	r.Prolong(pay, 4, 2000)
	r.Advance(999)
	wantInputs(t, r)
	r.Advance(1000)
	wantInputs(t, r, election.Withdraw{Election: pay, Remaining: 100, Stopped: 4})
	if last := (*recorded)[len(*recorded)-1]; last.Stopped != 4 {
		t.Errorf("on record is %+v", last)
	}
	withdrawn(r, 4, 2000, election.ReasonWithdrawn)
	wantInputs(t, r)
	r.Lead(1100, pay, 5, 2100, nil, nil)
	wantLines(t, other, "candidate, elected 5 until 2100")
	if c := &r.Counters; c.ByDeadline.Load() != 1 || c.Candidacies.Load() != 1 {
		t.Errorf("counted %+v", c)
	}
}

func TestAProgramThatDiedWithTheAgentIsFollowedAtOnce(t *testing.T) {
	r, _ := next(theActor())
	r.Take()
	r.Dead("k1")
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 4})
	withdrawn(r, 4, 1000, election.ReasonWithdrawn)
	wantInputs(t, r)
	if len(r.byID)+len(r.races)+len(r.waits) != 0 || r.WakeAt() != election.Never {
		t.Error("something is left behind")
	}
}

func TestAReceiptFromAProgramThatDoesNotResumeCounts(t *testing.T) {
	r, _ := next(theActor())
	r.Take()
	if err := r.Receipt("k1", pay, 4, "", func(uid uint32) bool { return uid == 7 }); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 4})
	withdrawn(r, 4, 1000, election.ReasonWithdrawn)
	wantInputs(t, r)
}

// The program was sent the term, and has stopped: no other program may be sent that term (K4d).
func TestATermWithAReceiptIsGivenBackByTheNextLife(t *testing.T) {
	p := theActor()
	p.Stopped = 4
	r, _ := next(p)
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 4})
	_, err := r.Resume(0, back())
	refusal(t, err, api.CodeNotFound)
	k := stand(t, r)
	r.Lead(0, pay, 4, 1000, nil, nil)
	wantLines(t, k, "candidate")
	withdrawn(r, 4, 1000, election.ReasonWithdrawn)
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100})
}

// The former life stepped down. The program may not know that.
func TestAHandOverGoesOnWithTheNextLife(t *testing.T) {
	ends := func(p *Past) { p.Ending = election.Ending{Reason: election.ReasonTransferred, StopBy: 1000} }
	r, _ := next(theActor(), ends)
	wantInputs(t, r)
	withdrawn(r, 4, 1000, election.ReasonTransferred) // the elector's first step
	wantInputs(t, r, election.Withdraw{Election: pay})
	k, err := r.Resume(10, back())
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, k, "revoked 4 until 1000 (transferred)")
	if err := r.Receipt("k1", pay, 4, "", anybody); err != nil {
		t.Fatal(err)
	}
	wantInputs(t, r, election.Campaign{Election: pay, Priority: 100}, stopped(4))

	r, _ = next(record.Program{}, ends) // nobody acted
	withdrawn(r, 4, 1000, election.ReasonTransferred)
	if inputs := r.Take(); !slices.Contains(inputs, election.Input(stopped(4))) {
		t.Errorf("the elector received %v", inputs)
	}
}

// The term rose, and the agent died before it notified the program.
func TestATermThatRoseIsToldWhenTheProgramResumes(t *testing.T) {
	r, recorded := next(theActor(), func(p *Past) { p.Term = 6 })
	r.Rise(pay, 7, 1200, nil) // this life took a higher term
	if len(*recorded) != 0 {
		t.Errorf("on record came %+v, which nobody was sent", *recorded)
	}
	k, err := r.Resume(10, back())
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, k, "renewed 7 until 1200")
	if (*recorded)[0].Told != 7 {
		t.Errorf("on record came %+v", *recorded)
	}
}

func TestTheHostItselfGoesOn(t *testing.T) {
	for name, p := range map[string]record.Program{
		"it led":                               {Told: 4},
		"a program did, in an earlier term":    {Campaign: "k1", Told: 3, Stopped: 3},
		"nothing was put on record before":     {},
		"a program led this one, and is gone ": {Campaign: "k1", Told: 4, Stopped: 4},
	} {
		r := New(Config{Settings: Settings{Priority: 100, Host: true}, Past: []Past{{Program: p,
			Authority: election.Authority{Election: election.Default, Highest: 4, Term: 4, Until: 1000, Priority: 100}}}})
		want := election.Input(election.Campaign{Election: election.Default, Priority: 100})
		if p.Stopped == 4 {
			want = election.Withdraw{Election: election.Default, Remaining: 100, Stopped: 4}
		}
		if got := r.Take(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: the elector received %v, want %v", name, got, want)
		}
	}
}

// As after a reload, another priority ends a leadership only if it is 0.
func TestTheHostGoesOnWithAnotherPriority(t *testing.T) {
	for priority, want := range map[int][]election.Input{
		150: {election.Campaign{Election: election.Default, Priority: 100}, election.Campaign{Election: election.Default, Priority: 150}},
		0:   {election.Withdraw{Election: election.Default, Remaining: 0, Stopped: 4}},
	} {
		r := New(Config{Settings: Settings{Priority: priority, Host: true}, Past: []Past{{
			Authority: election.Authority{Election: election.Default, Highest: 4, Term: 4, Until: 1000, Priority: 100}}}})
		if got := r.Take(); !slices.Equal(got, want) {
			t.Errorf("priority %d: the elector received %v, want %v", priority, got, want)
		}
	}
}

// If some of a program's connections are not on record, its end can't be proven.
func TestWhatIsRecordedOfAProgramsConnections(t *testing.T) {
	p := theActor()
	p.Sockets = [record.MaxSockets]uint64{} // doyen run asks that no socket be recorded
	r, recorded := next(p)
	k, _ := r.Resume(0, back())
	if _, provable := k.Sockets(); provable || (*recorded)[0].Sockets != p.Sockets {
		t.Errorf("recorded %+v", *recorded)
	}
	r, recorded = next(theActor())
	k, _ = r.Resume(0, back(func(q *Resumption) { q.Program.Sockets[0] = 0 }))
	if _, provable := k.Sockets(); provable || !(*recorded)[0].More {
		t.Errorf("recorded %+v", *recorded)
	}
	p = theActor()
	for i := range p.Sockets {
		p.Sockets[i] = uint64(30 + i)
	}
	r, recorded = next(p)
	k, _ = r.Resume(0, back())
	if _, provable := k.Sockets(); provable || !(*recorded)[0].More {
		t.Errorf("recorded %+v", *recorded)
	}
	r, recorded = next(p)
	k, _ = r.Resume(0, back(func(q *Resumption) { q.Held = func([]uint64) []uint64 { return nil } }))
	if earlier, provable := k.Sockets(); !provable || len(earlier) != 0 || (*recorded)[0].Sockets != back().Program.Sockets {
		t.Errorf("recorded %+v", *recorded)
	}
}

// A leader without a quorum has no lease, and others lead as soon as its agent is gone.
func TestWithoutAQuorumNobodyIsWaitedFor(t *testing.T) {
	r, _ := next(theActor(), func(p *Past) { p.Until = election.Never })
	wantInputs(t, r, election.Withdraw{Election: pay, Stopped: 4})
	if programs, _ := r.Absent(); len(programs) != 0 {
		t.Error("a program is waited for")
	}
}
