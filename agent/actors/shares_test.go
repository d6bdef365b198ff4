package actors

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// crowd makes one caller a candidate in new elections until it is refused.
func crowd(r *Registry, now election.Instant, q Request, name string) (all []*Candidacy, err error) {
	for i := 0; ; i++ {
		q.Election = election.Name(fmt.Sprint(name, i))
		k, err := r.Stand(now, q)
		if err != nil {
			return all, err
		}
		all = append(all, k)
	}
}

// One user's thousand candidacies once left no place for root's.
func TestOneUserHasAShareOfTheCandidacies(t *testing.T) {
	n := 0
	r := New(Config{MaxOfUser: 64, NewID: func() string { n++; return fmt.Sprint("k", n) }})
	all, err := crowd(r, 0, Request{UID: 1}, "a")
	refusal(t, err, api.CodeBusy)
	if len(all) != 64 || !strings.Contains(err.Error(), "user 1") || !strings.Contains(err.Error(), "access.max-candidacies") {
		t.Errorf("%d candidacies, then %v; want 64, and which user's share that is", len(all), err)
	}
	r.End(all[0].ID())
	if _, err := r.Stand(0, Request{Election: "again", UID: 1}); err != nil {
		t.Errorf("a place that became free: %v", err)
	}
	taken := len(all)
	for uid := uint32(2); ; uid++ {
		more, err := crowd(r, 0, Request{UID: uid}, fmt.Sprint("u", uid, "-"))
		if taken += len(more); strings.Contains(err.Error(), "limit") {
			break
		}
	}
	if want := MaxCandidacies - MaxCandidacies/reserving; taken != want {
		t.Errorf("all users together have %d, want %d", taken, want)
	}
	own, err := crowd(r, 0, Request{Own: true}, "root")
	refusal(t, err, api.CodeBusy)
	if len(own) != MaxCandidacies/reserving {
		t.Errorf("root found %d places, want %d", len(own), MaxCandidacies/reserving)
	}
	for _, k := range own {
		r.End(k.ID())
	}
	if int(r.Counters.Candidacies.Load()) != taken || len(r.shares.of) != 1+taken/64 {
		t.Errorf("%d candidacies of %d users are counted", r.Counters.Candidacies.Load(), len(r.shares.of))
	}
}

// Each new election costs a write on each voter's disk.
func TestNewElectionsAreTakenAtARate(t *testing.T) {
	n := 0
	r := New(Config{MaxOfUser: 4, NewID: func() string { n++; return fmt.Sprint("k", n) }})
	now := election.Instant(time.Hour)
	begin := func(q Request) (begun int) {
		for i := range 100 {
			q.Election = election.Name(fmt.Sprint("e", now, "-", i))
			k, err := r.Stand(now, q)
			if err != nil {
				refusal(t, err, api.CodeBusy)
				break
			}
			begun++
			r.End(k.ID())
		}
		return begun
	}
	for _, c := range []struct {
		after time.Duration
		q     Request
		want  int
	}{
		{0, Request{UID: 1}, 8}, {0, Request{UID: 1}, 0}, {0, Request{UID: 2}, 8}, {0, Request{Own: true}, 100},
		{999 * time.Millisecond, Request{UID: 1}, 0}, {time.Millisecond, Request{UID: 1}, 1},
		{1500 * time.Millisecond, Request{UID: 1}, 1}, {500 * time.Millisecond, Request{UID: 1}, 1},
		{time.Hour, Request{UID: 1}, 8},
	} {
		now = now.Add(c.after)
		if got := begin(c.q); got != c.want {
			t.Errorf("after %s more, %+v begins %d, want %d", c.after, c.q, got, c.want)
		}
	}
	// Only new elections are limited, not new candidacies in an election that exists.
	if _, err := r.Stand(now, Request{Election: "there", Own: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Stand(now, Request{Election: "there", UID: 1}); err != nil {
		t.Errorf("an election that is there: %v", err)
	}
}
