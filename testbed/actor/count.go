package actor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// pace is the mean time between a program's additions.
	pace = 10 * time.Millisecond
	// In one of so many operations, the program pauses between the check of its lease and the
	// write. If another program has acted by then, the register has to refuse the write.
	dawdles = 100
)

// Who is the program that asks.
type Who struct{ Program, Host string }

type Ask struct {
	Add   bool // to the counter; false: read it
	Token uint64
	Value int   // to write
	At    int64 // an instant at which the program knew that it leads
	Call  int64 // when the program sent the request
}

type Answer struct {
	Done  bool // false: the token is too old
	Value int
}

type counter struct {
	name, host string
	register   string // path of its socket
}

var ErrRefused = errors.New("the register knows a higher token")

func (p *counter) act(l *client.Leadership) error {
	line, err := Dial(p.register, Who{p.name, p.host})
	if err != nil {
		return err
	}
	defer line.Close()
	value, read, token := 0, false, uint64(0)
	for l.Context().Err() == nil {
		at, now := boottime.Now(), l.Token()
		if !l.Valid() {
			return nil
		}
		a := Ask{Add: true, Token: now, Value: value + 1, At: int64(at)}
		if !read || now != token { // the first operation with a token reads; from then on the register refuses lower tokens
			a.Add, a.Value, token = false, 0, now
		}
		if rand.IntN(dawdles) == 0 { // as if the process paused between the check of its lease and the write
			_ = observe.Sleep(context.Background(), time.Duration(2*rand.Float64()*float64(time.Until(l.Deadline()))))
		}
		value, err = line.Ask(a)
		if errors.Is(err, ErrRefused) {
			return nil
		}
		if err != nil {
			return err
		}
		read = true
		_ = observe.Sleep(l.Context(), time.Duration(rand.ExpFloat64()*float64(pace)))
	}
	return nil
}

// Line connects a program with the register.
type Line struct{ *rpc.Client }

func Dial(path string, who Who) (*Line, error) {
	c, err := rpc.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("reach the register: %w", err)
	}
	l := &Line{c}
	return l, l.call("Enter", who, &Answer{})
}

func (l *Line) call(what string, in any, out *Answer) error {
	return wrap.Error(l.Call("Desk."+what, in, out), "ask the register")
}

// Ask does an operation, and reports to the register when the answer came.
func (l *Line) Ask(a Ask) (int, error) {
	got, err := l.Do(a)
	if err != nil {
		return 0, err
	}
	if !got.Done {
		return 0, ErrRefused
	}
	return got.Value, l.call("Returned", int64(boottime.Now()), &Answer{})
}

func (l *Line) Do(a Ask) (got Answer, err error) {
	a.Call = int64(boottime.Now())
	err = l.call("Do", a, &got)
	return got, err
}
