package live

import (
	"context"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// play does the steps whose time has come.
func (s *session) play(ctx context.Context) {
	if s.first.IsZero() {
		return
	}
	if len(s.steps) == 0 && s.o.KillLeaderEvery > 0 {
		s.steps = killing(s.o.KillLeaderEvery)(s.rounds)
		s.rounds++
	}
	for len(s.steps) > 0 && time.Since(s.first) >= s.steps[0].At {
		step := s.steps[0]
		if _, led := s.ruler(); step.Target == theLeader && !led {
			return // it is done to the next leader
		}
		s.steps = s.steps[1:]
		if err := s.do(ctx, step.Verb, step.Target); err != nil {
			// Killing at intervals goes on: there may be no leader yet.
			s.reported(report{Bad, fmt.Sprintf("%s: %v", step, err), s.o.KillLeaderEvery == 0})
		}
	}
}

// press does what a key says, and reports whether it is to end.
func (s *session) press(ctx context.Context, k key) (quit bool) {
	hosts := s.cluster.Hosts()
	selected := hosts[s.selected].Name()
	var err error
	switch k {
	case keyQuit, 'q':
		return true
	case keyUp:
		s.selected = max(0, s.selected-1)
	case keyDown:
		s.selected = min(len(hosts)-1, s.selected+1)
	case 'k':
		err = s.do(ctx, Kill, selected)
	case 's':
		err = s.do(ctx, Stop, selected)
	case 'c':
		err = s.do(ctx, Continue, selected)
	case 't':
		err = s.do(ctx, Terminate, selected)
	case 'r':
		err = s.do(ctx, Restart, selected)
	case 'g':
		err = s.do(ctx, Resign, selected)
	case 'l':
		err = s.do(ctx, Kill, theLeader)
	default:
		if i := int(k - '1'); i >= 0 && i < min(9, len(hosts)) {
			s.selected = i
		}
	}
	if err != nil {
		s.say(Bad, "%v", err)
	}
	s.front.show(s.model())
	return false
}

// do does the verb to every host that the target means.
func (s *session) do(ctx context.Context, v Verb, target string) error {
	targets, err := s.resolve(v, target)
	if err != nil {
		return err
	}
	for _, h := range targets {
		if err := s.doTo(ctx, v, h); err != nil {
			return err
		}
	}
	return nil
}

// ruler returns the host that leads, if one does.
func (s *session) ruler() (*hosts.Host, bool) {
	h, ok := s.cluster.Host(s.leader.agent)
	return h, ok && h.Status() == hosts.Running
}

func (s *session) resolve(v Verb, target string) ([]*hosts.Host, error) {
	switch target {
	case theLeader:
		if h, led := s.ruler(); led {
			return []*hosts.Host{h}, nil
		}
		return nil, fmt.Errorf("%s: nobody leads", v)
	case aFollower:
		for _, h := range s.cluster.Hosts() {
			if h.Status() == hosts.Running && h.Name() != s.leader.agent {
				return []*hosts.Host{h}, nil
			}
		}
		return nil, fmt.Errorf("%s: nobody follows", v)
	case everySuited:
		var suited []*hosts.Host
		for _, h := range s.cluster.Hosts() {
			if v.suits(h.Status()) {
				suited = append(suited, h)
			}
		}
		return suited, nil
	}
	if h, ok := s.cluster.Host(target); ok {
		return []*hosts.Host{h}, nil
	}
	return nil, fmt.Errorf("%s: there is no %s", v, target)
}

// suits reports whether the verb does anything to a host of this status.
func (v Verb) suits(status hosts.Status) bool {
	switch v {
	case Start:
		return status == hosts.Down
	case Continue:
		return status == hosts.Frozen
	case Kill:
		return status != hosts.Down
	case Restart:
		return true
	}
	return status == hosts.Running
}

func (s *session) doTo(ctx context.Context, v Verb, h *hosts.Host) error {
	was := ruling{h.Name(), s.tracker.Standing(h.Name()).Term}
	leads := was == s.leader
	at, err := s.deal(ctx, v, h)
	if err != nil {
		return err
	}
	mood, suffix := Plain, ""
	if leads {
		mood, suffix = Bad, ", the leader"
		if v != Start && v != Continue {
			s.blow = &blow{was, v, at}
		}
	}
	s.say(mood, "%s %s%s", v.sign(), h.Name(), suffix)
	return nil
}

func (v Verb) sign() string {
	switch v {
	case Kill:
		return "kill -9"
	case Stop:
		return "SIGSTOP"
	case Continue:
		return "SIGCONT"
	case Terminate:
		return "SIGTERM"
	}
	return string(v)
}

// deal does the verb to a host, or begins to, and returns the instant before.
func (s *session) deal(ctx context.Context, v Verb, h *hosts.Host) (at election.Instant, err error) {
	switch v {
	case Kill:
		if at, err = h.Kill(); err == nil {
			s.asked[h.Name()] = true
		}
	case Stop:
		if at, err = h.Freeze(); err == nil {
			s.tracker.Froze(h.Name())
		}
	case Continue:
		if at, err = h.Thaw(); err == nil {
			s.tracker.Thawed(h.Name(), at)
		}
	case Terminate:
		if at, err = h.Terminate(); err == nil {
			s.asked[h.Name()] = true
		}
	case Start:
		at, err = h.Start()
	case Restart:
		at = boottime.Now()
		s.asked[h.Name()] = h.Status() != hosts.Down
		s.working.Go(func() { s.restart(ctx, h) })
	case Resign:
		at = boottime.Now()
		s.working.Go(func() { s.resign(ctx, h) })
	}
	return at, err
}

// restart ends a process as politely as it lets itself be, and starts it again.
func (s *session) restart(ctx context.Context, h *hosts.Host) {
	limit := h.Config().Lease + closeLimit
	_, _ = h.Terminate() // it may be down
	_, _ = h.Thaw()
	select {
	case <-h.Done():
	case <-time.After(limit):
		_, _ = h.Kill()
		<-h.Done()
	case <-ctx.Done():
		return
	}
	if _, err := h.Start(); err != nil {
		s.report(ctx, report{Bad, err.Error(), true})
		return
	}
	s.report(ctx, report{Plain, h.Name() + " started again", false})
}

func (s *session) resign(ctx context.Context, h *hosts.Host) {
	ctx, cancel := context.WithTimeout(ctx, 2*h.Config().Lease+closeLimit)
	defer cancel()
	c := client.New(h.Config().Socket)
	defer c.Close()
	outcome, err := c.Resign(ctx, string(election.Default))
	switch {
	case err != nil:
		s.report(ctx, report{Bad, fmt.Sprintf("resign %s: %v", h.Name(), err), true})
	case !outcome.Done:
		s.report(ctx, report{Bad, fmt.Sprintf("resign %s: %s", h.Name(), outcome.Message), true})
	}
}

func (s *session) report(ctx context.Context, r report) {
	select {
	case s.reports <- r:
	case <-ctx.Done():
	}
}
