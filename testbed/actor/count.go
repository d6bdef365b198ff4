package actor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// pace is the mean time between a program's additions.
	pace = 10 * time.Millisecond
	// In one of so many operations, the program pauses between the check of its lease and the
	// write. If another program has acted by then, the register has to refuse the write.
	dawdles = 100
	// Register is the name under which a register serves its method Do.
	Register = "Register"
)

// Ask is an operation of a program on a register.
type Ask struct {
	Program, Host string
	Add           bool // to the counter; false: read it
	Token         uint64
	Value         int   // to write
	At            int64 // an instant at which the program knew that it leads
}

type Answer struct {
	Done  bool // false: the token is too old
	Value int
}

// count adds to a register as long as it leads and is not refused.
func count(l *client.Leadership, a Ask, register string) error {
	line, err := rpc.Dial("unix", register)
	if err != nil {
		return fmt.Errorf("reach the register: %w", err)
	}
	defer line.Close()
	for read := false; l.Context().Err() == nil; read = true {
		before := a.Token
		if a.At, a.Token = stamp.Now(), l.Token(); !l.Valid() {
			return nil
		}
		a.Value++
		if a.Add = read && a.Token == before; !a.Add { // the first operation with a token reads; from then on the register refuses lower tokens
			a.Value = 0
		}
		if rand.IntN(dawdles) == 0 { // as if the process paused between the check of its lease and the write
			_ = observe.Sleep(context.Background(), time.Duration(2*rand.Float64()*float64(time.Until(l.Deadline()))))
		}
		var got Answer
		if err := line.Call(Register+".Do", a, &got); err != nil || !got.Done {
			return wrap.Error(err, "ask the register")
		}
		a.Value = got.Value
		_ = observe.Sleep(l.Context(), time.Duration(rand.ExpFloat64()*float64(pace)))
	}
	return nil
}
