package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/boottime"
)

const (
	// Election is what the programs stand in.
	Election = "soak"
	// programArgument makes the testbed's executable one of the programs. It is no
	// command for people.
	programArgument = "program-of-soak"
	// pace is the mean time between a program's additions.
	pace = 10 * time.Millisecond
	// dawdles is how seldom a program is held up at the worst moment: once in so
	// many operations. What it then writes comes too late, and the register has to
	// refuse it if another one acts by then.
	dawdles = 100
	// answering is how long the register may take: longer than any freeze.
	answering = 30 * time.Second
)

// ServeProgram runs a program, if that is what this process was started for;
// args are the process's. It returns false at once if not, else the exit code.
func ServeProgram(args []string, stderr io.Writer) (code int, served bool) {
	if len(args) != 5 || args[1] != programArgument {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := &program{name: fmt.Sprintf("%s/%d", args[4], os.Getpid()), host: args[4], agent: args[2], register: args[3]}
	if err := p.run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "soak: %s: %v\n", p.name, err)
		return 1, true
	}
	return 0, true
}

// program stands in the election, and adds to the register while it leads.
type program struct {
	name, host      string
	agent, register string // paths of sockets
}

func (p *program) run(ctx context.Context) error {
	c := client.New(p.agent)
	defer c.Close()
	for ctx.Err() == nil {
		l, err := c.Campaign(ctx, Election)
		if err != nil {
			return err
		}
		err = p.act(l)
		// It has stopped: nothing is under way, and nothing will be.
		if closed := l.Close(); err == nil || errors.Is(err, errRefused) {
			_ = closed // the agent may be gone, and its lease then runs out
			continue
		}
		return err
	}
	return context.Cause(ctx)
}

// errRefused says that somebody has a higher token.
var errRefused = errors.New("the register knows a higher token")

// act adds to the register until the leadership is over.
func (p *program) act(l *client.Leadership) error {
	conn, err := net.Dial("unix", p.register)
	if err != nil {
		return fmt.Errorf("reach the register: %w", err)
	}
	defer conn.Close()
	line := &line{encoder: json.NewEncoder(conn), lines: bufio.NewScanner(conn), conn: conn}
	if err := line.encoder.Encode(ask{Program: p.name, Host: p.host}); err != nil {
		return fmt.Errorf("reach the register: %w", err)
	}
	value, read, token := 0, false, uint64(0)
	for l.Context().Err() == nil {
		at, now := boottime.Now(), l.Token()
		if !l.Valid() {
			return nil
		}
		a := ask{Op: "add", Token: now, Value: value + 1, At: int64(at)}
		if !read || now != token { // the first with a token reads, and shuts out earlier ones
			a.Op, a.Value, token = "read", 0, now
		}
		if rand.IntN(dawdles) == 0 { // it is held up between looking at its lease and acting
			hold(time.Duration(2 * rand.Float64() * float64(time.Until(l.Deadline()))))
		}
		if value, err = line.ask(a); err != nil {
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

// ask does an operation, and tells when its answer came.
func (l *line) ask(a ask) (int, error) {
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
	var got answer
	if err := json.Unmarshal(l.lines.Bytes(), &got); err != nil {
		return 0, fmt.Errorf("ask the register: %w", err)
	}
	if !got.Done {
		return 0, errRefused
	}
	if err := l.encoder.Encode(ask{Return: int64(boottime.Now())}); err != nil {
		return 0, fmt.Errorf("tell the register: %w", err)
	}
	return got.Value, nil
}

// hold stops a program that nothing can tell to stop, as a pause of its process
// does.
func hold(d time.Duration) { pause(context.Background(), d) }

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
