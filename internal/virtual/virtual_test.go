package virtual_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
)

// TestWhatIsDueFirstHappensFirst compares a timeline with a sorted list.
func TestWhatIsDueFirstHappensFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type happening struct{ at, event int }
		var l virtual.Timeline[int64, int]
		var want []happening
		for i := range rapid.IntRange(0, 40).Draw(t, "events") {
			at := rapid.IntRange(0, 10).Draw(t, "at")
			l.Push(int64(at), i)
			want = append(want, happening{at, i})
		}
		moved := rapid.Bool().Draw(t, "later")
		slices.SortStableFunc(want, func(a, b happening) int { return a.at - b.at })
		if moved {
			l.Reschedule(func(at int64, _ int) int64 { return at + 5 })
		}
		end := rapid.IntRange(0, 15).Draw(t, "end")
		for _, w := range want {
			if moved {
				w.at += 5
			}
			e, agent, ok := l.Next(int64(end))
			if !ok {
				if w.at <= end || l.Now != int64(end) {
					t.Fatalf("nothing happens until %d, and it is %d; want %d at %d", end, l.Now, w.event, w.at)
				}
				return
			}
			if agent != -1 || l.Now != int64(w.at) || e != w.event {
				t.Fatalf("event %d happens at %d, want %d at %d", e, l.Now, w.event, w.at)
			}
		}
	})
}

// If two agents want to be woken at the same time, the first one is woken first.
func TestAnAgentIsWokenOnceAfterTheEventsOfThatMoment(t *testing.T) {
	l := virtual.Timeline[int64, string]{Wakes: []int64{virtual.Never, 3, 3}}
	l.Push(3, "event")
	got := ""
	for e, agent, ok := l.Next(9); ok; e, agent, ok = l.Next(9) {
		got += fmt.Sprintf("%d:%s%d ", l.Now, e, agent)
	}
	if got != "3:event-1 3:1 3:2 " || l.Now != 9 {
		t.Errorf("got %q until %d", got, l.Now)
	}
}

func TestActionsAreInTheOrderThatTheProtocolRestsOn(t *testing.T) {
	out := election.Output{Record: &election.LifeRecord{}, Withdraw: make([]election.Withdrawal, 2), Persist: &election.Persist{}, Send: make([]election.Envelope, 1),
		Announce: make([]election.Announcement, 1), Replies: make([]election.Reply, 1), WakeAt: 7}
	var got []string
	for action := range virtual.Actions(&out) {
		got = append(got, fmt.Sprintf("%T", action))
	}
	want := []string{"*election.LifeRecord", "virtual.Publish", "election.Withdrawal", "election.Withdrawal", "*election.Persist", "election.Envelope", "election.Instant",
		"election.Announcement", "election.Reply"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestARecordKeepsTheNewestOfEachElection(t *testing.T) {
	before := election.LifeRecord{Retired: 1, Rows: []election.Authority{{Election: "a", Highest: 4}, {Election: "c", Highest: 2}}}
	got := virtual.Recorded(before, &election.LifeRecord{Retired: 4, Spent: 3,
		Rows: []election.Authority{{Election: "a"}, {Election: "b", Highest: 1}, {Election: "c", Highest: 3, Term: 3}, {Election: "d"}}})
	want := election.LifeRecord{Retired: 4, Spent: 3, Rows: []election.Authority{{Election: "b", Highest: 1}, {Election: "c", Highest: 3, Term: 3}}}
	if !reflect.DeepEqual(got, want) || len(before.Rows) != 2 || before.Rows[1].Highest != 2 {
		t.Errorf("on record is %+v after %+v, want %+v", got, before, want)
	}
}
