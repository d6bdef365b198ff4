package scenario

import (
	"context"
	"encoding/binary"
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
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/attack"
)

// These make an executable a program of a script. They are no commands for
// people.
const (
	campaignArgument = "program-of-testbed" // SOCKET ELECTION PRIORITY STAMPS
	actArgument      = "command-of-testbed" // STAMPS
	parentArgument   = "parent-of-testbed"  // STAMPS
)

// stampEvery is how often a program that acts says so.
const stampEvery = time.Millisecond

// ServeProgram is a program that a script started, if that is what this process
// was started for; args are the process's. It returns false at once if not,
// else the exit code once the program ended.
func ServeProgram(args []string, stdout, stderr io.Writer) (code int, served bool) {
	if code, served := attack.Serve(args, stdout, stderr); served {
		return code, true
	}
	var err error
	switch {
	case len(args) == 6 && args[1] == campaignArgument:
		err = campaign(args[2], args[3], args[4], args[5], stdout)
	case len(args) == 3 && args[1] == actArgument:
		err = obey(args[2], stdout)
	case len(args) == 3 && args[1] == parentArgument:
		err = delegate(args[0], args[2], stdout)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(stderr, "program:", err)
		return 1, true
	}
	return 0, true
}

// campaign stands in an election by the client library, and acts whenever it
// leads, until SIGTERM.
func campaign(socket, name, priority, stamps string, stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	book, err := openStamps(stamps, stdout)
	if err != nil {
		return err
	}
	var request api.CampaignRequest
	if n, err := strconv.Atoi(priority); err == nil {
		request.Priority = &n
	}
	c := client.New(socket)
	defer c.Close()
	for ctx.Err() == nil {
		l, err := c.CampaignAs(ctx, name, request)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				break
			}
			return err
		}
		if err := act(l, book); err != nil {
			return err
		}
	}
	return nil
}

// act stamps what it does while it leads: each stamp is a reading of the clock
// taken before the check that allowed it, so it claims no more than it may.
func act(l *client.Leadership, book *stamps) error {
	defer l.Close()
	tick := time.NewTicker(stampEvery)
	defer tick.Stop()
	var term uint64
	for {
		at := boottime.Now()
		if !l.Valid() {
			book.say("stopped", term, boottime.Now())
			fmt.Fprintln(book.stdout, context.Cause(l.Context())) // for the log
			return nil
		}
		if now := l.Token(); now != term {
			term = now
			book.say("acting", term, at)
		}
		if err := book.stamp(term, at); err != nil {
			return err
		}
		select {
		case <-l.Context().Done():
		case <-tick.C:
		}
	}
}

// delegate is the command of `doyen run` that has a child act for it. The child
// gets no descriptor but the usual ones, as most runtimes have it.
func delegate(self, path string, stdout io.Writer) error {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
	child := exec.Command(self, actArgument, path)
	child.Stdout = stdout
	return child.Run()
}

// obey is the command of `doyen run`: it acts as long as it lives, and looks at
// no lease. It ends on SIGTERM.
func obey(path string, stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	term, err := strconv.ParseUint(os.Getenv("DOYEN_TERM"), 10, 64)
	if err != nil {
		return fmt.Errorf("read DOYEN_TERM: %w", err)
	}
	book, err := openStamps(path, stdout)
	if err != nil {
		return err
	}
	tick := time.NewTicker(stampEvery)
	defer tick.Stop()
	book.say("acting", term, boottime.Now())
	for ctx.Err() == nil {
		if err := book.stamp(term, boottime.Now()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	book.say("stopped", term, boottime.Now())
	return nil
}

// stamps is where a program notes that it acts: a record is the term, the
// process and the instant, eight bytes each, appended in one write, so that a
// program that is killed leaves no half of one.
type stamps struct {
	file   *os.File
	stdout io.Writer
}

const stampSize = 24

func openStamps(path string, stdout io.Writer) (*stamps, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the stamps: %w", err)
	}
	return &stamps{file: file, stdout: stdout}, nil
}

func (s *stamps) stamp(term uint64, at election.Instant) error {
	var record [stampSize]byte
	binary.LittleEndian.PutUint64(record[0:], term)
	binary.LittleEndian.PutUint64(record[8:], uint64(os.Getpid()))
	binary.LittleEndian.PutUint64(record[16:], uint64(at))
	if _, err := s.file.Write(record[:]); err != nil {
		return fmt.Errorf("write a stamp: %w", err)
	}
	return nil
}

// say tells the script at once.
func (s *stamps) say(what string, term uint64, at election.Instant) {
	fmt.Fprintln(s.stdout, "@", what, term, os.Getpid(), int64(at))
}
