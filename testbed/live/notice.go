package live

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

func (s *session) say(mood Mood, format string, args ...any) {
	l := Line{At: time.Since(s.began), Mood: mood, Text: fmt.Sprintf(format, args...)}
	if s.lines = append(s.lines, l); len(s.lines) > maxLines {
		s.lines = s.lines[1:]
	}
	s.front.line(l)
}

func (s *session) view(agent string) (st observe.View) {
	s.lab.Look(func(e *observe.Elections) { st = e.Of(string(election.Default)).View(agent) })
	return st
}

// notice shows what is new: processes that ended, a leader that was gained or lost, an
// agreement.
func (s *session) notice() {
	exits := s.lab.Exits()
	for _, e := range exits[s.exits:] {
		switch {
		case e.Expected && e.Clean:
			s.say(Faint, "%s ended cleanly", e.Host)
		case !e.Expected:
			s.reported(report{mood: Bad, text: fmt.Sprintf("%s ended by itself, %s: %s", e.Host, e.How, e.Said), fail: true})
		}
	}
	s.exits = len(exits)
	var now ruling
	a, ok := observe.Agreement{}, false
	running := s.lab.Running()
	s.lab.Look(func(e *observe.Elections) {
		t := e.Of(string(election.Default))
		now.agent = t.Leader()
		if now.agent != "" {
			now.term = t.View(now.agent).Term
		}
		a, ok = t.Agreement(running)
	})
	if now != s.leader {
		s.newLeader(now)
	}
	if ok && (a.Leader != s.agreed.Leader || a.Term != s.agreed.Term) {
		all := fmt.Sprintf("all %d agree", len(running))
		if len(running) == 1 {
			all = "it is alone"
		}
		took := ""
		if s.started != 0 { // the cold start is over
			took = ", " + ms(a.At.Sub(s.started)) + " after the last one was started"
			s.started = 0
		}
		s.say(Good, "%s: %s leads, term %d%s", all, a.Leader, a.Term, took)
	}
	if s.agreed = a; !ok {
		s.agreed = observe.Agreement{}
	}
}

func (s *session) newLeader(now ruling) {
	before := s.leader
	s.leader = now
	if now.agent == "" {
		s.deposed, s.deposedAt = before, boottime.Now()
		if before := s.view(before.agent); before.Heard {
			s.say(Plain, "%s no longer leads: %s", before.Agent, cmp.Or(strings.ReplaceAll(before.Reason, "_", " "), "no reason is known"))
		}
		return
	}
	took, leads := "", "leads"
	since := s.view(now.agent).Since
	if b := s.hit; b != nil && since >= b.at {
		d := since.Sub(b.at)
		took = fmt.Sprintf(", %s after %s", ms(d), b.text)
		s.hit = nil
		switch {
		case now == b.ruling:
			leads = "leads on"
		case now.agent != b.agent:
			s.tookOver(d, b.asked)
		}
	}
	s.say(Good, "%s %s, term %d%s", now.agent, leads, now.term, took)
	if t := s.lab.Together(); t > s.together {
		s.say(Bad, "two leaders at once: %s in all", ms(t))
		s.together = t
	}
}

func (s *session) struck(f observe.Fault, over bool) {
	text, after := describe(f, over)
	leader := s.leader
	if leader.agent == "" && f.From < s.deposedAt {
		leader = s.deposed // the leader at that time
	}
	mood := Plain
	if slices.Contains(f.Where, leader.agent) && !over {
		mood, text = Bad, text+", the leader"
		s.hit = &hit{leader, after, f.From, f.What == "resign" || f.What == "terminate"}
	}
	s.say(mood, "%s", text)
}

// tookOver records the time of a takeover, or of a hand-over if asked. Only the newest times are kept.
func (s *session) tookOver(d time.Duration, asked bool) {
	all := &s.takeovers
	if asked {
		all = &s.handOvers
	}
	if *all = append(*all, d); len(*all) > maxLines {
		*all = (*all)[1:]
	}
}

// allEnded reports whether all processes have ended and notice has handled their exits. The lab
// learns of an exit only a moment after it.
func (s *session) allEnded() bool {
	ended := map[string]bool{}
	for _, e := range s.lab.Exits()[:s.exits] {
		ended[e.Host] = true
	}
	for _, h := range s.lab.Cluster.Hosts() {
		if h.Status() != hosts.Down || !ended[h.Name()] {
			return false
		}
	}
	return true
}

func (s *session) reported(r report) {
	if r.fault != nil {
		s.struck(*r.fault, r.over)
	}
	if r.text != "" {
		s.say(r.mood, "%s", r.text)
	}
	if r.fail {
		s.failed = append(s.failed, r.text)
	}
	if r.done {
		s.driving = false
	}
}

// verdict judges a run that was given a time.
func (s *session) verdict() error {
	var errs []error
	if s.agreed == (observe.Agreement{}) {
		var views []string
		for _, name := range s.lab.Running() {
			st := s.view(name)
			views = append(views, fmt.Sprintf("%s is %s and names %s, term %d", name, cmp.Or(st.State, "-"), cmp.Or(st.Leader, "-"), st.Term))
		}
		errs = append(errs, fmt.Errorf("the agents do not agree at the end: %s", strings.Join(views, "; ")))
	}
	if s.driving {
		errs = append(errs, errors.New("not all that was to happen to the agents has happened"))
	}
	errs = append(errs, each.Of(s.failed, func(f string) error { return fmt.Errorf("it went wrong: %s", f) })...)
	if t := s.lab.Together(); t > 0 && s.o.Hosts.Quorum {
		errs = append(errs, fmt.Errorf("two agents led at once, for %s", ms(t)))
	}
	return errors.Join(errs...)
}

func (s *session) summary() []string {
	text := []string{times("takeovers", s.takeovers)}
	if len(s.handOvers) > 0 {
		text = append(text, times("hand-overs", s.handOvers))
	}
	if s.lab != nil {
		s.together = s.lab.Together()
	}
	return append(text, "two leaders at once: "+ms(s.together))
}

func times(of string, all []time.Duration) string {
	text := fmt.Sprintf("%s: %d", of, len(all))
	for i, t := range all[max(0, len(all)-8):] {
		text += map[bool]string{true: ": ", false: " "}[i == 0] + ms(t)
	}
	return text
}

func (s *session) model() Model {
	c := s.lab.Cluster.Hosts()[0].Config()
	m := Model{
		Algorithm: c.Algorithm, Profile: c.Profile, Quorum: c.Quorum, Heartbeat: c.Heartbeat, Lease: c.Lease,
		Elapsed: time.Since(s.began), Leader: s.leader.agent, Term: s.leader.term,
		Summary: s.summary(), Selected: s.selected, Lines: s.lines, Ask: asker(),
	}
	if m.Leader != "" {
		m.Remaining = s.view(m.Leader).Until.Sub(boottime.Now())
	}
	for _, h := range s.lab.Cluster.Hosts() {
		st := s.view(h.Name())
		m.Agents = append(m.Agents, Row{Name: h.Name(), Status: h.Status(), State: st.State,
			Follows: st.Leader, Term: st.Term, Addr: addressOf(h.Config()), Socket: h.Config().Socket})
	}
	return m
}

func addressOf(c settings.Config) string {
	if c.GossipPort == settings.DefaultGossipPort {
		return c.Bind
	}
	return net.JoinHostPort(c.Bind, strconv.Itoa(c.GossipPort))
}
