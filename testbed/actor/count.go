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
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// pace is the mean time between a program's additions.
	pace = 10 * time.Millisecond
	// dawdles is how seldom a program is held up at the worst moment: once in so many
	// operations. It then writes too late. If another program acts by then, the register has
	// to refuse the write.
	dawdles = 100
	// answering is how long the register may take to answer. No freeze is longer.
	answering = 30 * time.Second
)

type Ask struct {
	Program string `json:"program,omitempty"` // who asks; only in the first line
	Host    string `json:"host,omitempty"`
	Op      string `json:"op,omitempty"` // read, add, or "" if an answer came
	Token   uint64 `json:"token,omitempty"`
	Value   int    `json:"value,omitempty"`       // to write
	At      int64  `json:"at_ns,omitempty"`       // an instant at which the program knew that it leads
	Call    int64  `json:"call_ns,omitempty"`     // when it asked
	Return  int64  `json:"returned_ns,omitempty"` // when the answer came
}

type Answer struct {
	Done  bool `json:"done"` // false: the token is too old
	Value int  `json:"value"`
}

type counter struct {
	name, host string
	register   string // path of its socket
}

var ErrRefused = errors.New("the register knows a higher token")

func (p *counter) act(l *client.Leadership) error {
	line, err := Dial(p.register, p.name, p.host)
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
		a := Ask{Op: "add", Token: now, Value: value + 1, At: int64(at)}
		if !read || now != token { // the first operation with a token reads, and shuts out earlier tokens
			a.Op, a.Value, token = "read", 0, now
		}
		if rand.IntN(dawdles) == 0 { // as if the process paused between looking at the lease and acting
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

type Line struct {
	net.Conn
	encoder *json.Encoder
	lines   *bufio.Scanner
}

func Dial(path, program, host string) (*Line, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("reach the register: %w", err)
	}
	l := &Line{encoder: json.NewEncoder(conn), lines: bufio.NewScanner(conn), Conn: conn}
	if err := l.encoder.Encode(Ask{Program: program, Host: host}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("reach the register: %w", err)
	}
	return l, nil
}

// Ask does an operation, and tells the register when the answer came.
func (l *Line) Ask(a Ask) (int, error) {
	got, err := l.Do(a)
	if err != nil {
		return 0, fmt.Errorf("ask the register: %w", err)
	}
	if !got.Done {
		return 0, ErrRefused
	}
	if err := l.encoder.Encode(Ask{Return: int64(boottime.Now())}); err != nil {
		return 0, fmt.Errorf("answer the register: %w", err)
	}
	return got.Value, nil
}

func (l *Line) Do(a Ask) (got Answer, err error) {
	if err := l.SetDeadline(time.Now().Add(answering)); err != nil {
		return got, err
	}
	a.Call = int64(boottime.Now())
	if err := l.encoder.Encode(a); err != nil {
		return got, err
	}
	if !l.lines.Scan() {
		return got, fmt.Errorf("no answer: %w", errors.Join(l.lines.Err(), io.ErrUnexpectedEOF))
	}
	return got, json.Unmarshal(l.lines.Bytes(), &got)
}
