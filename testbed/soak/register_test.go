package soak

import (
	"context"
	"net"
	"net/rpc"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
)

// serving is a register that answers on a socket.
func serving(t *testing.T) (*Register, func(program string) *line) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := &Register{}
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
		c, err := rpc.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return &line{c, program}
	}
}

type line struct {
	*rpc.Client
	program string
}

func (l *line) ask(t *testing.T, op string, token uint64, value int) (got actor.Answer) {
	t.Helper()
	err := l.Call("Register.Do", actor.Ask{Program: l.program, Add: op == "add", Token: token, Value: value, At: int64(boottime.Now())}, &got)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (l *line) must(t *testing.T, op string, token uint64, value, want int) {
	t.Helper()
	if got := l.ask(t, op, token, value); !got.Done || got.Value != want {
		t.Fatalf("%s with token %d: %+v; want %d", op, token, got, want)
	}
}

func TestTheRegisterRefusesAnOldToken(t *testing.T) {
	r, open := serving(t)
	a, b := open("a"), open("b")
	a.must(t, "read", 1, 0, 0)
	a.must(t, "add", 1, 1, 1)
	b.must(t, "read", 2, 0, 1)
	if got := a.ask(t, "add", 1, 2); got.Done {
		t.Errorf("an old token: %+v", got)
	}
	b.must(t, "add", 2, 2, 2)
	s := r.Seen()
	if s.Operations != 4 || s.Refused != 1 || s.Violated != "" {
		t.Errorf("%+v", s)
	}
	if acts := s.Acts; len(acts) != 2 || acts[0].Program != "a" || acts[0].Term != 1 || acts[1].Term != 2 {
		t.Errorf("%+v", acts)
	}
}

// In an unguarded register, a value could be written twice, or go back behind an addition.
func TestALostAdditionIsFound(t *testing.T) {
	for name, values := range map[string][]int{"twice": {1, 2, 2}, "back": {1, 2, 1}, "one is left out": {1, 3}} {
		r, open := serving(t)
		a := open("a")
		a.must(t, "read", 1, 0, 0)
		for _, v := range values {
			a.must(t, "add", 1, v, v)
		}
		if s := r.Seen(); !strings.Contains(s.Violated, "a writes") || len(s.Newest) != 1+len(values) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// An operation counts although its program died before it had the answer.
func TestAnOperationWhoseProgramDiedCounts(t *testing.T) {
	r, open := serving(t)
	a := open("a")
	a.must(t, "read", 1, 0, 0)
	a.must(t, "add", 1, 1, 1)
	a.Close()
	b := open("b")
	b.must(t, "read", 2, 0, 1)
	b.must(t, "add", 2, 2, 2)
	if s := r.Seen(); s.Violated != "" {
		t.Error(s.Violated)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	r := &Register{}
	for i := range 2 * maxNewest {
		if err := r.Do(actor.Ask{Program: "a", Token: uint64(i)}, &actor.Answer{}); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Seen(); len(s.Newest) > maxNewest || len(s.Acts) > maxActs || s.Newest[len(s.Newest)-1].Token != 2*maxNewest-1 {
		t.Errorf("%d operations, %d stretches", len(s.Newest), len(s.Acts))
	}
}
