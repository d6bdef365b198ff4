package history_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/api"
)

// command is given at a moment, in milliseconds.
func command(what string, uid uint32, at int64) api.Transition {
	return api.Transition{Time: time.UnixMilli(at).UTC(), Type: api.ChangeCommand, Reason: what, BoottimeNS: ms(at),
		By: &api.Caller{UID: uid, Host: "a"}, Admin: uid == 0}
}

func reasons(l *history.Log) (all []string) {
	for _, t := range l.List("", history.MaxKept) {
		all = append(all, t.Reason)
	}
	return all
}

// 92,376 refused transfers once pushed root's drain out of the history within a second.
func TestCommandsOfAdministratorsAreNotPushedOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	l, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	l.Enter(command("drain", 0, 1))
	for n := range uint64(3 * history.MaxKept) {
		add(l, n)
		if n%5000 == 0 {
			flush(t, l)
		}
	}
	flush(t, l)
	next, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []*history.Log{l, next} {
		if all := log.List("", history.MaxKept); len(all) != history.MaxKept || all[0].Reason != "drain" || all[len(all)-1].Term != 3*history.MaxKept-1 {
			t.Errorf("%d are kept, from %+v to %+v", len(all), all[0], all[len(all)-1])
		}
	}
	for n := range int64(2 * history.MaxActs) { // administrators' commands take no more than the reserved places
		l.Enter(command("drain", 0, (n+2)*time.Hour.Milliseconds()))
	}
	add(l, 9)
	acts := slices.DeleteFunc(l.List("", history.MaxKept), func(t api.Transition) bool { return !t.Admin })
	if len(acts) < history.MaxActs {
		t.Errorf("%d commands are kept", len(acts))
	}
}

func TestEqualCommandsAreOneEntryWithACount(t *testing.T) {
	l := history.New(0)
	for n := range int64(3) {
		if fresh := l.Enter(command("transfer to=b", 1000, n)); fresh != (n == 0) {
			t.Errorf("%d: a new entry: %t", n, fresh)
		}
	}
	l.Enter(command("transfer to=b", 1001, 4))
	l.Enter(command("transfer to=c", 1000, 5))
	l.Enter(command("transfer to=b", 1000, time.Minute.Milliseconds()))
	got := []int{}
	for _, c := range l.List("", 10) {
		got = append(got, c.Count)
	}
	if !slices.Equal(got, []int{3, 0, 0, 0}) {
		t.Errorf("counts %v", got)
	}
}

func TestAUserAddsFewCommandsInATime(t *testing.T) {
	l := history.New(0)
	for n := range int64(4900) { // in five seconds
		l.Enter(command(time.Duration(n).String(), 1000, n))
		l.Enter(command(time.Duration(n).String(), 0, n))
	}
	byUser := slices.DeleteFunc(l.List("", history.MaxKept), func(t api.Transition) bool { return t.Admin })
	if len(byUser) != 14 { // ten at once, then one a second
		t.Errorf("%d entries of one user", len(byUser))
	}
}

// A command is entered only when its outcome is known: later than the changes that it caused.
func TestACommandIsListedBeforeWhatItHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	l, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	change := func(what string, at int64) {
		c := nobody("default", 1, at)
		c.Time, c.Reason = time.UnixMilli(at).UTC(), what
		l.Add(c)
	}
	change("of an earlier boot", 5000)
	l.List("", 1)
	change("elected", 1000)
	change("resigned", 1020)
	flush(t, l)
	l.Enter(command("resign", 0, 1010))
	flush(t, l)
	next, err := keep(t, path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"of an earlier boot", "elected", "resign", "resigned"}
	if got, kept := reasons(l), reasons(next); !slices.Equal(got, want) || !slices.Equal(kept, want) {
		t.Errorf("%q, and for the next run %q, want %q", got, kept, want)
	}
}
