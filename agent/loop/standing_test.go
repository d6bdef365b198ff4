package loop

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// shows changes the core's status, and returns the warnings of that code.
func (r *rig) shows(change func(*elector.Status), code string) (found []api.Warning) {
	r.mu.Lock()
	change(&r.status)
	r.mu.Unlock()
	r.views <- membership.View{}
	synctest.Wait()
	for _, w := range r.loop.Picture().Warnings {
		if w.Code == code {
			found = append(found, w)
		}
	}
	return found
}

func TestAnExpectedElectionWithoutCandidatesIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.loop.Expected = []election.Name{"billing", "payments"}
		r.start(t)
		billing := &elector.ContestStatus{Election: "billing", Candidates: []election.PeerID{"b"}}
		payments := &elector.ContestStatus{Election: "payments"}
		for _, c := range []struct {
			what     string
			contests []*elector.ContestStatus
			quorum   elector.QuorumStatus
			want     string // the elections that are named
		}{
			{"neither exists", nil, elector.QuorumStatus{}, "billing payments"},
			{"one has a candidate", []*elector.ContestStatus{billing, payments}, elector.QuorumStatus{}, "payments"},
			{"there is no quorum, which is a warning itself", nil, elector.QuorumStatus{Enabled: true}, ""},
			{"there is one", nil, elector.QuorumStatus{Enabled: true, Exists: true}, "billing payments"},
		} {
			var got []string
			for _, w := range r.shows(func(s *elector.Status) { s.Contests, s.Quorum = c.contests, c.quorum }, warnCandidates) {
				_, rest, _ := strings.Cut(w.Message, "candidate in ")
				name, _, _ := strings.Cut(rest, ",")
				got = append(got, name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: warned of %q, want %q", c.what, got, c.want)
			}
		}
		r.cancel()
	})
}

// An agent that stays drained by mistake is missing at the next failure.
func TestADrainOfADayIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		since := time.Now().Add(-23 * time.Hour)
		r.loop.Drained = func() time.Time { return since }
		r.start(t)
		on := func(s *elector.Status) { s.Draining = true }
		if got := r.shows(on, warnDrained); len(got) != 0 {
			t.Errorf("after 23 hours: %+v", got)
		}
		<-time.After(time.Hour) // by the bubble's clock
		if got := r.shows(on, warnDrained); len(got) != 1 || !strings.Contains(got[0].Message, "doyen drain off") {
			t.Errorf("after a day: %+v", got)
		}
		if got := r.shows(func(s *elector.Status) { s.Draining = false }, warnDrained); len(got) != 0 {
			t.Errorf("after its end: %+v", got)
		}
		r.cancel()
	})
}

func TestAChangeOfTheLeaderIsCounted(t *testing.T) {
	var l leaders
	for i, c := range []struct {
		leader string
		want   int
	}{{"a", 0}, {"a", 0}, {"b", 1}, {"a", 2}} {
		l.follow("default", c.leader)
		if got, _ := l.Count(0, "default"); got != c.want {
			t.Errorf("after %d leaders: %d changes, want %d", i+1, got, c.want)
		}
	}
	for i := range 2 * maxFollowed {
		l.follow(strings.Repeat("x", i+1), "a")
	}
	if n, _ := l.Count(0, "none"); len(l.of) > maxFollowed || n != 0 {
		t.Errorf("%d elections are kept", len(l.of))
	}
}
