package soak

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
)

// serving is a register that serves a socket.
func serving(t *testing.T) (*Register, func(program string) *line) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRegister()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r, func(program string) *line {
		l, err := actor.Dial(path, actor.Who{Program: program})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return &line{l}
	}
}

type line struct{ *actor.Line }

func (l *line) must(t *testing.T, op string, token uint64, value, want int) {
	t.Helper()
	got, err := l.Ask(actor.Ask{Add: op == "add", Token: token, Value: value, At: int64(boottime.Now())})
	if err != nil || got != want {
		t.Fatalf("%s with token %d: %d, %v; want %d", op, token, got, err, want)
	}
}

func TestTheRegisterRefusesAnOldToken(t *testing.T) {
	r, open := serving(t)
	a, b := open("a"), open("b")
	a.must(t, "read", 1, 0, 0)
	a.must(t, "add", 1, 1, 1)
	b.must(t, "read", 2, 0, 1)
	if _, err := a.Ask(actor.Ask{Add: true, Token: 1, Value: 2}); err != actor.ErrRefused {
		t.Errorf("an old token: %v", err)
	}
	b.must(t, "add", 2, 2, 2)
	// The end of an answer may still be on its way. Its operation is then judged with the next
	// window.
	if what := r.Check(); what != "" {
		t.Error(what)
	}
	if c := r.Counts(); c.Operations != 4 || c.Refused != 1 {
		t.Errorf("%+v", c)
	}
	if acts := r.Acts(); len(acts) != 2 || acts[0].Program != "a" || acts[0].Term != 1 || acts[1].Term != 2 {
		t.Errorf("%+v", acts)
	}
}

// No order explains two additions that write the same value. Only an unguarded register accepts
// both.
func TestALostAdditionIsFound(t *testing.T) {
	r, open := serving(t)
	a := open("a")
	a.must(t, "read", 1, 0, 0)
	for _, v := range []int{1, 2, 2} { // the third addition writes the same value as the second
		a.must(t, "add", 1, v, v)
	}
	a.Close() // this ends the operation under way
	await(t, func() bool { return strings.Contains(r.Check(), "no order of") })
	if len(r.History()) < 4 {
		t.Errorf("%d operations are kept", len(r.History()))
	}
}

func TestAnOperationWhoseProgramDiedCounts(t *testing.T) {
	r, open := serving(t)
	a := open("a")
	a.must(t, "read", 1, 0, 0)
	if _, err := a.Do(actor.Ask{Add: true, Token: 1, Value: 1}); err != nil { // the operation is done, but the program dies before it reports that
		t.Fatal(err)
	}
	a.Close()
	await(t, func() bool { return r.Counts().Unknown == 1 })
	b := open("b")
	b.must(t, "read", 2, 0, 1)
	b.must(t, "add", 2, 2, 2)
	b.Close()
	await(t, func() bool { r.Check(); return r.Counts().Windows >= 1 && len(r.History()) == 0 })
	if what := r.Check(); what != "" {
		t.Error(what)
	}
}

// await checks again and again until the condition holds.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it never came to be")
		}
	}
}
