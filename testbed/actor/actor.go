// Package actor is the testbed's programs: candidates in elections, by the client library, and the
// commands of `doyen run`, of jobs and of hooks. Each stamps when it acts (package stamp) and reports
// on stdout when it begins and stops acting. Only the program of Count reports to a register instead.
//
// A program is the testbed's own executable, run again with a hidden first argument. The exception
// is the small executable in command, which the bench starts while it measures.
package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/attack"
)

// word makes an executable one of the programs. It is not meant for people.
const word = "program-of-testbed" // followed by ROLE ARGUMENT…

// Path is the executable that runs the programs: this one, whose main function has to call Serve.
func Path() string {
	path, _ := os.Executable() // fails only if this process has lost its executable; then no program starts
	return path
}

// Campaign returns the arguments of a program that is a candidate, and acts while it leads.
// The priority is a number, or "-" for the agent's own priority.
func Campaign(socket, election, priority, stamps string) []string {
	return []string{word, "campaign", socket, election, priority, stamps}
}

// Command returns the arguments of the command that `doyen run` or a hook starts. The command acts
// for as long as it lives, and does not check a lease. Under a hook it acts from the event `leading` on.
func Command(stamps string) []string { return []string{word, "command", stamps} }

// Job returns the arguments of the command of a job. The command acts for the given time and then ends with
// status 0, or on SIGTERM earlier with status 1. Its stamp shows the job's key, and whether it ended with status 0.
func Job(stamps string, lasts time.Duration) []string {
	return []string{word, "job", stamps, lasts.String()}
}

// Parent returns the arguments of a command that does not act itself, but starts a child that does.
func Parent(stamps string) []string { return []string{word, "parent", stamps} }

// Count returns the arguments of a candidate that adds to a register while it leads.
func Count(socket, election, register, host string) []string {
	return []string{word, "count", socket, election, register, host}
}

func Attack(o attack.Order) ([]string, error) {
	order, err := json.Marshal(o)
	return []string{word, "attack", string(order)}, wrap.Error(err, "encode an order")
}

// Serve runs an attack or a program of the testbed, if the args name one. It returns the exit code
// and true once the attack or program has ended. If the args name none, it returns false at once.
// The main function must call Serve before anything else.
func Serve(args []string, stdout, stderr io.Writer) (code int, served bool) {
	if len(args) < 3 || args[1] != word {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, args[2], args[3:], stdout); errors.Is(err, errStopped) || err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, "program:", err)
		return 1, true
	}
	return 0, true
}

func serve(ctx context.Context, role string, args []string, stdout io.Writer) error {
	switch {
	case role == "campaign" && len(args) == 4:
		return campaign(ctx, args[0], args[1], args[2], func(l *client.Leadership) error { return act(l, args[3], stdout) })
	case role == "count" && len(args) == 4:
		own := Ask{Program: fmt.Sprintf("%s/%d", args[3], os.Getpid()), Host: args[3]}
		return campaign(ctx, args[0], args[1], "-", func(l *client.Leadership) error { return count(l, own, args[2]) })
	case role == "command" && len(args) == 1:
		return command(ctx, args[0], stdout)
	case role == "job" && len(args) == 2:
		return job(ctx, args[0], args[1], stdout)
	case role == "attack" && len(args) == 1:
		did, err := attack.Run(ctx, args[0])
		if err == nil {
			fmt.Fprintln(stdout, did)
		}
		return err
	case role == "parent" && len(args) == 1:
		return parent(args[0], stdout)
	}
	return fmt.Errorf("there is no role %s with %d arguments", role, len(args))
}

// campaign is a candidate until ctx ends, and acts whenever it leads.
func campaign(ctx context.Context, socket, election, priority string, act func(*client.Leadership) error) error {
	var request api.CampaignRequest
	if n, err := strconv.Atoi(priority); err == nil {
		request.Priority = &n
	}
	c := client.New(socket)
	defer c.Close()
	for ctx.Err() == nil {
		l, err := c.CampaignAs(ctx, election, request)
		if err != nil {
			return err
		}
		err = act(l)
		// act has returned, so the program does nothing more as a leader. If the agent is
		// gone, the lease runs out.
		_ = l.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// act stamps while it leads. It reads the clock for a stamp before the check that allows the
// stamp, so the stamp claims no more than the lease allows.
func act(l *client.Leadership, stamps string, stdout io.Writer) (err error) {
	tick := time.NewTicker(stamp.Every)
	defer tick.Stop()
	var term uint64
	var book *stamp.Book
	defer func() {
		if book != nil {
			err = errors.Join(err, book.Close())
		}
	}()
	for {
		at := stamp.Now()
		if !l.Valid() {
			say(stdout, "stopped", term)
			fmt.Fprintln(stdout, context.Cause(l.Context())) // for the log
			return nil
		}
		if now := l.Token(); now != term {
			if book != nil {
				book.Close()
			}
			if book, err = stamp.Open(stamps, stamp.Stamp{Term: now, First: at}); err != nil {
				return err
			}
			term = now
			fmt.Fprintln(stdout, "@ acting", term, os.Getpid(), at)
		}
		if err := book.Stamp(at); err != nil {
			return err
		}
		select {
		case <-l.Context().Done():
		case <-tick.C:
		}
	}
}

// say reports to the testbed what the program does from now on.
func say(stdout io.Writer, what string, term uint64) {
	fmt.Fprintln(stdout, "@", what, term, os.Getpid(), int64(boottime.Now()))
}

// command acts until SIGTERM.
func command(ctx context.Context, stamps string, stdout io.Writer) error {
	if event := os.Getenv("DOYEN_EVENT"); event != "" && event != string(election.Leading) {
		return nil // a hook acts only on leading
	}
	s, err := stamp.Commanded(stamp.Now())
	if err != nil {
		return err
	}
	say(stdout, "acting", s.Term)
	err = stamp.Act(ctx, stamps, s)
	say(stdout, "stopped", s.Term)
	return err
}

var errStopped = errors.New("stopped before its end")

// job acts for a time, and stamps its end if it was not stopped early.
func job(ctx context.Context, stamps, lasts string, stdout io.Writer) error {
	s, err := stamp.Commanded(stamp.Now())
	if err != nil {
		return err
	}
	long, err := time.ParseDuration(lasts)
	if err != nil {
		return err
	}
	book, err := stamp.Open(stamps, s)
	if err != nil {
		return err
	}
	defer book.Close()
	say(stdout, "acting", s.Term)
	over, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	err = book.Act(over)
	say(stdout, "stopped", s.Term)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errStopped
	}
	return book.End()
}

// parent starts a child, which acts in its place. The child inherits only stdin, stdout and stderr,
// as the children of most languages' runtimes do.
func parent(stamps string, stdout io.Writer) error {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
	child := exec.Command(Path(), Command(stamps)...)
	child.Stdout = stdout
	return child.Run()
}
