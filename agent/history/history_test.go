package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/api"
)

func ms(n int64) int64 { return n * int64(time.Millisecond) }

func leads(election, who string, term uint64, at int64) api.Transition {
	return api.Transition{Election: election, Type: api.ChangeLeader, Leader: &api.Leader{Name: who}, Term: term, BoottimeNS: ms(at)}
}

func nobody(election string, term uint64, at int64) api.Transition {
	return api.Transition{Election: election, Type: api.ChangeNoLeader, Term: term, BoottimeNS: ms(at)}
}

func TestTheGapIsTheTimeWithoutALeader(t *testing.T) {
	l := history.New(ms(1000), "default")
	for _, add := range []api.Transition{
		leads("default", "a", 1, 1250),  // the gap counts from the agent's start
		leads("payments", "b", 3, 1300), // the log does not know since when payments had no leader
		leads("default", "b", 2, 2000),  // handed over without a pause
		nobody("default", 2, 3000),
		nobody("default", 2, 3400), // still nobody
		leads("payments", "b", 4, 3500),
		leads("default", "a", 3, 4100),
	} {
		l.Add(add)
	}
	want := "0:250 1:0 2:0 5:0 6:1100 "
	got := ""
	for i, tr := range l.List("", 100) {
		if tr.Leader != nil {
			got += fmt.Sprintf("%d:%d ", i, tr.GapMS)
		}
	}
	if got != want {
		t.Errorf("gaps %q, want %q", got, want)
	}
}

// The gap that an operator asks about begins before anybody notices that the leader is gone.
func TestTheGapBeginsWhenTheLeaderWasLastHeard(t *testing.T) {
	silent := func(change api.Transition, heard int64) api.Transition {
		change.HeardBoottimeNS = ms(heard)
		return change
	}
	l := history.New(0)
	for _, add := range []api.Transition{
		leads("default", "a", 1, 1000),
		silent(nobody("default", 1, 3200), 2000),
		{Election: "default", Type: api.ChangeCommand, BoottimeNS: ms(3250)},
		leads("default", "b", 2, 3300),
		silent(leads("default", "c", 3, 5000), 3900), // c leads before anybody noticed that b was gone
		nobody("default", 3, 6000),                   // released
		leads("default", "a", 4, 6010),
	} {
		l.Add(add)
	}
	got := ""
	for _, tr := range l.List("", 100) {
		if tr.Type == api.ChangeLeader {
			got += fmt.Sprintf("%s:%d/%d ", tr.Leader.Name, tr.GapMS, tr.VacantMS)
		}
	}
	if want := "a:0/0 b:1300/100 c:1100/0 a:10/10 "; got != want {
		t.Errorf("gaps %q, want %q", got, want)
	}
}

func TestTheNewestAreListedInTheirOrderByElectionAndLimit(t *testing.T) {
	l := history.New(0)
	if got := l.List("", 10); got == nil || len(got) != 0 {
		t.Errorf("an empty log lists %v, want an empty list", got)
	}
	const added = history.MaxKept*2 + 7
	for n := range uint64(added) {
		l.Add(leads(fmt.Sprintf("e%d", n%2), "a", n, int64(n)))
	}
	all := l.List("", added)
	if len(all) != history.MaxKept || all[0].Term != added-history.MaxKept || all[len(all)-1].Term != added-1 {
		t.Errorf("%d are kept, from term %d to %d", len(all), all[0].Term, all[len(all)-1].Term)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Term != all[i-1].Term+1 {
			t.Fatalf("term %d follows %d", all[i].Term, all[i-1].Term)
		}
	}
	some := l.List("e1", 3)
	if len(some) != 3 || some[0].Term != added-6 || some[2].Term != added-2 {
		t.Errorf("the newest three of e1 are %v", some)
	}
	if none := l.List("other", 3); len(none) != 0 {
		t.Errorf("an election without changes has %v", none)
	}
}

// Elections that never have a leader again take no place from elections that go on.
func TestGapsAreTimedHoweverManyElectionsCameAndWent(t *testing.T) {
	l := history.New(0)
	for i := range int64(5000) {
		l.Add(nobody(fmt.Sprint("job-", i), 1, i))
	}
	l.Add(leads("default", "a", 1, 6000))
	l.Add(nobody("default", 1, 7000))
	l.Add(leads("default", "a", 2, 7300))
	if all := l.List("default", 1); len(all) != 1 || all[0].GapMS != 300 {
		t.Errorf("%+v", all)
	}
}
