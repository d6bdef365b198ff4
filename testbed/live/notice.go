package live

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// say notes a line and shows it.
func (s *session) say(mood Mood, format string, args ...any) {
	l := Line{At: time.Since(s.began), Mood: mood, Text: fmt.Sprintf(format, args...)}
	if s.lines = append(s.lines, l); len(s.lines) > maxLines {
		s.lines = s.lines[1:]
	}
	s.front.line(l)
}

// notice says what is new: a leader gained or lost, an agreement.
func (s *session) notice() {
	now := ruling{agent: s.tracker.Leader()}
	if now.agent != "" {
		now.term = s.tracker.Standing(now.agent).Term
	}
	if now != s.leader {
		s.newLeader(now)
	}
	running := s.running()
	a, ok := s.tracker.Agreement(running)
	if ok && (a.Leader != s.agreed.Leader || a.Term != s.agreed.Term) {
		all := fmt.Sprintf("all %d agree", len(running))
		if len(running) == 1 {
			all = "it is alone"
		}
		s.say(Good, "%s: %s leads, term %d%s", all, a.Leader, a.Term, s.afterStart(a))
	}
	s.agreed = a
	if !ok {
		s.agreed = observe.Agreement{}
	}
}

// afterStart tells the cold start's time, once.
func (s *session) afterStart(a observe.Agreement) string {
	if !s.first.IsZero() {
		return ""
	}
	s.first = time.Now()
	return ", " + ms(a.At.Sub(s.started)) + " after the last one was started"
}

func (s *session) newLeader(now ruling) {
	before := s.leader
	s.leader = now
	if now.agent == "" {
		if before := s.tracker.Standing(before.agent); before.Heard {
			s.say(Plain, "%s no longer leads%s", before.Agent, because(before.Reason))
		}
		return
	}
	took := ""
	since := s.tracker.Standing(now.agent).Since
	if b := s.blow; b != nil && since >= b.at && now != b.ruling {
		d := since.Sub(b.at)
		took = fmt.Sprintf(", %s after %s %s", ms(d), b.verb.done(), b.agent)
		s.blow = nil
		if now.agent != b.agent {
			s.tookOver(d)
		}
	}
	s.say(Good, "%s leads, term %d%s", now.agent, now.term, took)
	if t := observe.Together(s.tracker.Overlaps(), boottime.Now()); t > s.together {
		s.say(Bad, "two leaders at once: %s in all", ms(t))
		s.together = t
	}
}

// tookOver counts a takeover, of which the newest are kept.
func (s *session) tookOver(d time.Duration) {
	if s.takeovers = append(s.takeovers, d); len(s.takeovers) > maxLines {
		s.takeovers = s.takeovers[1:]
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + strings.ReplaceAll(reason, "_", " ") + ")"
}

// done is the verb as "after ... alpha" has it.
func (v Verb) done() string {
	switch v {
	case Kill:
		return "kill -9 of"
	case Stop:
		return "SIGSTOP of"
	case Terminate, Restart:
		return "SIGTERM of"
	case Resign:
		return "the resignation of"
	}
	return string(v) + " of"
}

// running are the agents that can be expected to know who leads.
func (s *session) running() []string {
	var names []string
	for _, h := range s.cluster.Hosts() {
		if h.Status() == hosts.Running {
			names = append(names, h.Name())
		}
	}
	return names
}

// allEnded reports whether no process is left, and how each ended is known: that is
// told a moment later.
func (s *session) allEnded() bool {
	all := true
	for _, h := range s.cluster.Hosts() {
		if h.Status() == hosts.Running {
			delete(s.ended, h.Name())
		}
		all = all && s.ended[h.Name()]
	}
	return all
}

func (s *session) exited(e hosts.Exit) {
	s.ended[e.Host] = true
	s.tracker.Exited(e.Host, e.At)
	asked := s.asked[e.Host]
	delete(s.asked, e.Host)
	switch {
	case asked && e.Clean:
		s.say(Faint, "%s ended cleanly", e.Host)
	case !asked:
		s.reported(report{Bad, fmt.Sprintf("%s ended by itself, %s: %s", e.Host, e.How, e.Said), true})
	}
}

func (s *session) reported(r report) {
	s.say(r.mood, "%s", r.text)
	if r.fail {
		s.failed = append(s.failed, r.text)
	}
}

// verdict judges a run that was given a time.
func (s *session) verdict() error {
	var errs []error
	if s.agreed == (observe.Agreement{}) {
		var said []string
		for _, name := range s.running() {
			st := s.tracker.Standing(name)
			said = append(said, fmt.Sprintf("%s is %s and names %s, term %d", name, dash(st.State), dash(st.Leader), st.Term))
		}
		errs = append(errs, fmt.Errorf("the agents do not agree at the end: %s", strings.Join(said, "; ")))
	}
	for _, step := range s.steps {
		errs = append(errs, fmt.Errorf("the script was not ended: %s", step))
	}
	for _, f := range s.failed {
		errs = append(errs, fmt.Errorf("it went wrong: %s", f))
	}
	if t := observe.Together(s.tracker.Overlaps(), boottime.Now()); t > 0 && s.o.Hosts.Quorum {
		errs = append(errs, fmt.Errorf("two agents led at once, for %s", ms(t)))
	}
	return errors.Join(errs...)
}

func (s *session) summary() []string {
	text := []string{fmt.Sprintf("takeovers: %d", len(s.takeovers))}
	if len(s.takeovers) > 0 {
		text[0] += ":"
		for _, t := range s.takeovers[max(0, len(s.takeovers)-8):] {
			text[0] += " " + ms(t)
		}
	}
	if s.tracker != nil {
		text = append(text, "two leaders at once: "+ms(observe.Together(s.tracker.Overlaps(), boottime.Now())))
	}
	return text
}

func (s *session) model() Model {
	c := s.cluster.Hosts()[0].Config()
	m := Model{
		Algorithm: c.Algorithm, Profile: c.Profile, Quorum: c.Quorum, Heartbeat: c.Heartbeat, Lease: c.Lease,
		Elapsed: time.Since(s.began), Leader: s.leader.agent, Term: s.leader.term,
		Takeovers: s.takeovers, Together: s.together, Selected: s.selected, Lines: s.lines, Ask: asker(),
	}
	if m.Leader != "" {
		m.Remaining = s.tracker.Standing(m.Leader).Until.Sub(boottime.Now())
	}
	for _, h := range s.cluster.Hosts() {
		st := s.tracker.Standing(h.Name())
		m.Agents = append(m.Agents, Row{Name: h.Name(), Status: h.Status(), State: st.State, Leads: st.Leads,
			Follows: st.Leader, Term: st.Term, Addr: addressOf(h.Config()), Socket: h.Config().Socket})
	}
	return m
}

func addressOf(c agent.Config) string {
	if c.GossipPort == agent.DefaultGossipPort {
		return c.Bind
	}
	return net.JoinHostPort(c.Bind, strconv.Itoa(c.GossipPort))
}
