package actor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/boottime"
)

const (
	// pace is the mean time between a program's additions.
	pace = 10 * time.Millisecond
	// dawdles is how seldom a program is held up at the worst moment: once in so
	// many operations. What it then writes comes too late, and the register has to
	// refuse it if another one acts by then.
	dawdles = 100
	// answering is how long the register may take: longer than any freeze.
	answering = 30 * time.Second
)

// Ask is one line to the register: an operation, or that an answer came.
type Ask struct {
	Program string `json:"program,omitempty"` // of the first line: who it is
	Host    string `json:"host,omitempty"`
	Op      string `json:"op,omitempty"` // read, add, or "" if an answer came
	Token   uint64 `json:"token,omitempty"`
	Value   int    `json:"value,omitempty"`       // to write
	At      int64  `json:"at_ns,omitempty"`       // an instant at which it knew that it leads
	Call    int64  `json:"call_ns,omitempty"`     // when it asked
	Return  int64  `json:"returned_ns,omitempty"` // when the answer came
}

// Answer is one line back.
type Answer struct {
	Done  bool `json:"done"` // false: the token is too old
	Value int  `json:"value"`
}

// counter is a program that adds to the register while it leads.
type counter struct {
	name, host string
	register   string // path of its socket
}

// errRefused says that another program has a higher token.
var errRefused = errors.New("the register knows a higher token")

// act adds to the register until the leadership is over.
func (p *counter) act(l *client.Leadership) error {
	conn, err := net.Dial("unix", p.register)
	if err != nil {
		return fmt.Errorf("reach the register: %w", err)
	}
	defer conn.Close()
	line := &line{encoder: json.NewEncoder(conn), lines: bufio.NewScanner(conn), conn: conn}
	if err := line.encoder.Encode(Ask{Program: p.name, Host: p.host}); err != nil {
		return fmt.Errorf("reach the register: %w", err)
	}
	value, read, token := 0, false, uint64(0)
	for l.Context().Err() == nil {
		at, now := boottime.Now(), l.Token()
		if !l.Valid() {
			return nil
		}
		a := Ask{Op: "add", Token: now, Value: value + 1, At: int64(at)}
		if !read || now != token { // the first with a token reads, and shuts out earlier ones
			a.Op, a.Value, token = "read", 0, now
		}
		if rand.IntN(dawdles) == 0 { // as a pause of the process does, between looking at the lease and acting
			pause(context.Background(), time.Duration(2*rand.Float64()*float64(time.Until(l.Deadline()))))
		}
		value, err = line.ask(a)
		if errors.Is(err, errRefused) {
			return nil
		}
		if err != nil {
			return err
		}
		read = true
		pause(l.Context(), time.Duration(rand.ExpFloat64()*float64(pace)))
	}
	return nil
}

// line is a connection to the register.
type line struct {
	encoder *json.Encoder
	lines   *bufio.Scanner
	conn    net.Conn
}

// ask does an operation, and reports when its answer came.
func (l *line) ask(a Ask) (int, error) {
	if err := l.conn.SetDeadline(time.Now().Add(answering)); err != nil {
		return 0, err
	}
	a.Call = int64(boottime.Now())
	if err := l.encoder.Encode(a); err != nil {
		return 0, fmt.Errorf("ask the register: %w", err)
	}
	if !l.lines.Scan() {
		return 0, fmt.Errorf("ask the register: no answer: %w", errors.Join(l.lines.Err(), io.ErrUnexpectedEOF))
	}
	var got Answer
	if err := json.Unmarshal(l.lines.Bytes(), &got); err != nil {
		return 0, fmt.Errorf("ask the register: %w", err)
	}
	if !got.Done {
		return 0, errRefused
	}
	if err := l.encoder.Encode(Ask{Return: int64(boottime.Now())}); err != nil {
		return 0, fmt.Errorf("answer the register: %w", err)
	}
	return got.Value, nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
