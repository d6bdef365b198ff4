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
	"github.com/doyen-election/doyen/testbed/observe"
)

// Options says what to run and show.
type Options struct {
	Hosts           hosts.Config
	For             time.Duration // 0: until it is ended by key, signal or ctx
	Script          []Step        // see ParseScript
	KillLeaderEvery time.Duration // 0: never
	Stdin           *os.File      // read for keys if it and Stdout are terminals
	Stdout          io.Writer
	Getenv          func(string) string
}

const (
	pollEvery  = 100 * time.Millisecond
	drawEvery  = 50 * time.Millisecond
	closeLimit = 2 * time.Second // for agents to end by themselves
	endSlack   = 2 * time.Second // and one lease, to agree at the end
	maxLines   = 200
	maxFor     = 7 * 24 * time.Hour
	maxShown   = 24 // agents: a screen has so many lines
)

// Run starts the agents, shows them, does to them what keys and script say, and
// ends them. With a time to run for it returns an error unless, at the end, the
// agents that run agree on a leader and all went as the script says.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	if o.For > 0 && o.Script == nil && o.KillLeaderEvery == 0 {
		o.Script = demonstration(o.For)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{o: o, exits: make(chan hosts.Exit), reports: make(chan report), asked: map[string]bool{}, ended: map[string]bool{}}
	o.Hosts.OnExit = func(e hosts.Exit) {
		select {
		case s.exits <- e:
		case <-ctx.Done():
		}
	}
	if s.cluster, err = hosts.New(o.Hosts); err != nil {
		return err
	}
	defer func() {
		end, stop := context.WithTimeout(context.Background(), closeLimit)
		defer stop()
		cancel()
		s.working.Wait()
		err = errors.Join(err, s.cluster.Close(end))
	}()
	if s.front, err = openFront(o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.front.close(s.summary())) }() // also when something panics
	return s.run(ctx)
}

// Check reports what can't be run, naming the flag to blame.
func (o Options) Check() error {
	least := 2 * o.Hosts.Lease()
	switch {
	case o.Hosts.Agents < 1 || o.Hosts.Agents > maxShown:
		return fmt.Errorf("--agents: %d agents, 1 to %d can be shown", o.Hosts.Agents, maxShown)
	case len(o.Script) > 0 && o.KillLeaderEvery != 0:
		return errors.New("--script and --kill-leader-every exclude each other")
	case o.KillLeaderEvery != 0 && o.KillLeaderEvery < least:
		return fmt.Errorf("--kill-leader-every: %s is below two leases, %s: nobody could take over in between", o.KillLeaderEvery, least)
	case o.For < 0 || o.For > maxFor:
		return fmt.Errorf("--for: %s is not between 0s and %s", o.For, maxFor)
	}
	return o.Hosts.Check()
}

// session is one run. Its one goroutine owns all of it but the channels.
type session struct {
	o       Options
	cluster *hosts.Cluster
	front   front
	tracker *observe.Tracker
	exits   chan hosts.Exit
	reports chan report
	working sync.WaitGroup // what was started for a key or a step and takes its time

	began     time.Time
	started   election.Instant // of the last agent
	lines     []Line
	selected  int
	leader    ruling
	agreed    observe.Agreement // zero while they do not
	first     time.Time         // when they first agreed
	steps     []Step
	rounds    int             // of killing at intervals
	blow      *blow           // that the leader was dealt and none took over since
	asked     map[string]bool // whose process was told to end
	ended     map[string]bool // whose process has ended, as was told
	takeovers []time.Duration
	together  time.Duration
	failed    []string // what went wrong, steps that could not be done included
}

// ruling is a leader and its term.
type ruling struct {
	agent string
	term  uint64
}

// blow is a fault that hit the leader.
type blow struct {
	ruling
	verb Verb
	at   election.Instant
}

// report is the outcome of what took its time.
type report struct {
	mood Mood
	text string
	fail bool // a run that was given a time fails with it
}

func (s *session) run(ctx context.Context) error {
	first := s.cluster.Hosts()[0].Config()
	lease := first.Lease
	if !first.Quorum {
		lease = 0
	}
	s.tracker, s.began = observe.NewTracker(lease), time.Now()
	s.steps = s.o.Script
	if err := s.startAll(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := observe.Follow(ctx, observe.Options{Sources: s.sources(), Poll: pollEvery})
	err := s.loop(ctx, events, first.Lease)
	cancel()
	for range events { // until nothing follows any more
	}
	return err
}

func (s *session) startAll() error {
	for i, h := range s.cluster.Hosts() {
		at, err := h.Start()
		if err != nil {
			return err
		}
		s.started = at
		c := h.Config()
		s.front.intro(i, c.Name, addressOf(c), c.Socket)
	}
	s.say(Plain, "%d agents started", len(s.cluster.Hosts()))
	return nil
}

func (s *session) sources() []observe.Source {
	var all []observe.Source
	for _, h := range s.cluster.Hosts() {
		all = append(all, observe.Source{Agent: h.Name(), Socket: h.Config().Socket})
	}
	return all
}

// loop is the session's life. It returns nil when it was ended by key, or at
// its time with all well.
func (s *session) loop(ctx context.Context, events <-chan observe.Event, lease time.Duration) error {
	draw := time.NewTicker(drawEvery)
	defer draw.Stop()
	var end, grace <-chan time.Time
	if s.o.For > 0 {
		end = time.After(s.o.For)
	}
	for {
		select {
		case <-ctx.Done():
			return s.interrupted()
		case e := <-events:
			s.tracker.Apply(e)
		case e := <-s.exits:
			s.exited(e)
		case r := <-s.reports:
			s.reported(r)
		case k := <-s.front.keys():
			if s.press(ctx, k) {
				return nil
			}
		case <-draw.C:
			s.play(ctx)
			s.front.show(s.model())
		case <-end:
			end, grace = nil, time.After(lease+endSlack)
		case <-grace:
			return s.verdict()
		}
		s.notice()
		if grace != nil && (s.agreed != (observe.Agreement{}) || s.allEnded()) {
			return s.verdict()
		}
	}
}

func (s *session) interrupted() error {
	if s.o.For > 0 {
		return fmt.Errorf("run for %s: interrupted before the end", s.o.For)
	}
	return nil
}

// asker is how this machine runs the product's commands.
func asker() string {
	if _, err := exec.LookPath("doyen"); err == nil {
		return "doyen"
	}
	return "go run ./cmd/doyen"
}
