package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

type Options struct {
	Hosts  hosts.Config
	For    time.Duration // 0: until a key, a signal or ctx ends it
	Stdin  *os.File      // read for keys if it and Stdout are terminals
	Stdout io.Writer
	Getenv func(string) string
}

const (
	pollEvery  = 100 * time.Millisecond
	drawEvery  = 50 * time.Millisecond
	closeLimit = 2 * time.Second // in which agents can end by themselves
	endSlack   = 2 * time.Second // in which agents can agree at the end, besides a lease
	maxLines   = 200
	maxFor     = 7 * 24 * time.Hour
	maxShown   = 24 // the most agents that can be shown: a screen has no room for more
)

// Run starts the agents, shows them, does what keys and options ask for, and ends the agents.
// If Options.For is set, Run returns nil only if the running agents agree on a leader at the end
// and nothing went wrong.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{o: o, began: time.Now(), reports: make(chan report)}
	if s.front, err = openFront(o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.front.close(s.summary())) }() // even if something panics
	onFault := func(f observe.Fault, over bool) { s.report(ctx, report{fault: &f, over: over}) }
	l, err := lab.New(ctx, o.Hosts, lab.Options{Poll: pollEvery, OnFault: onFault})
	if err != nil {
		return err
	}
	defer func() {
		end, stop := context.WithTimeout(context.Background(), closeLimit)
		defer stop()
		cancel()
		s.working.Wait()
		err = errors.Join(err, l.Close(end))
	}()
	s.lab = l
	for i, h := range l.Cluster.Hosts() {
		c := h.Config()
		s.front.intro(i, c.Name, addressOf(c), c.Socket)
	}
	return s.run(ctx)
}

// Check returns an error if the options can't be run. The error names the flag to blame.
func (o Options) Check() error {
	switch {
	case o.Hosts.Agents < 1 || o.Hosts.Agents > maxShown:
		return fmt.Errorf("--agents: %d agents, 1 to %d can be shown", o.Hosts.Agents, maxShown)
	case o.For < 0 || o.For > maxFor:
		return fmt.Errorf("--for: %s is not between 0s and %s", o.For, maxFor)
	}
	return o.Hosts.Check()
}

// session is one run. One goroutine owns all of it except the lab and the channels.
type session struct {
	o       Options
	lab     *lab.Lab
	front   front
	reports chan report
	working sync.WaitGroup // the goroutines of do, and of the demonstration

	began     time.Time
	started   election.Instant // when the last agent was started; 0 once the cold start was shown
	lines     []Line
	selected  int
	leader    ruling
	deposed   ruling // the last leader, while nobody leads
	deposedAt election.Instant
	agreed    observe.Agreement // zero while the agents do not agree
	driving   bool              // the demonstration has not ended
	hit       *hit              // the newest fault of the leader, until another takes over
	exits     int               // how many of the lab's exits notice has handled
	takeovers []time.Duration
	handOvers []time.Duration
	together  time.Duration
	failed    []string // what went wrong
}

type ruling struct {
	agent string
	term  uint64
}

type hit struct {
	ruling
	text  string // the words that follow "1.2 s after"
	at    election.Instant
	asked bool // the leader was asked to hand over
}

// report is something that happened: a fault, or the outcome of something that took time.
type report struct {
	fault *observe.Fault
	over  bool

	mood Mood
	text string
	fail bool // fails a run that was given a time
	done bool // the demonstration has ended
}

func (s *session) report(ctx context.Context, r report) {
	select {
	case s.reports <- r:
	case <-ctx.Done():
	}
}

// run starts the agents, and the demonstration. Then it loops until the end.
func (s *session) run(ctx context.Context) (err error) {
	if _, s.started, err = s.lab.StartAll(); err != nil {
		return err
	}
	s.say(Plain, "%d agents started", len(s.lab.Cluster.Hosts()))
	if s.o.For > 0 {
		s.driving = true
		s.working.Go(func() {
			r := report{done: true}
			if err := demonstration(ctx, s.lab, s.o.For); err != nil {
				r = report{mood: Bad, text: err.Error(), fail: true, done: true}
			}
			s.report(ctx, r)
		})
	}
	return s.loop(ctx)
}

// loop runs until the session ends. With a time to run for, it returns nil only if the time has passed
// and all was well. Without one, it ends by a key or with ctx, and returns nil.
func (s *session) loop(ctx context.Context) error {
	draw := time.NewTicker(drawEvery)
	defer draw.Stop()
	var end, grace <-chan time.Time
	if s.o.For > 0 {
		end = time.After(s.o.For)
	}
	for {
		moved := s.lab.Moved()
		s.notice()
		if grace != nil && (s.agreed != (observe.Agreement{}) || s.allEnded()) {
			return s.verdict()
		}
		select {
		case <-ctx.Done():
			if s.o.For > 0 {
				return fmt.Errorf("run for %s: interrupted before the end", s.o.For)
			}
			return nil
		case r := <-s.reports:
			s.reported(r)
		case k := <-s.front.keys():
			if s.press(ctx, k) {
				return nil
			}
		case <-moved:
		case <-draw.C:
			s.front.show(s.model())
		case <-end:
			end, grace = nil, time.After(s.o.Hosts.Lease()+endSlack)
		case <-grace:
			return s.verdict()
		}
	}
}

// asker is what a user of this machine types to run the doyen command.
func asker() string {
	if _, err := exec.LookPath("doyen"); err == nil {
		return "doyen"
	}
	return "go run ./cmd/doyen"
}
