package simulation

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/election"
)

// record is one line of the trace, kept as it is and written out only if
// somebody wants to read it.
type record struct {
	at    int64
	agent *agent
	life  uint32
	local election.Instant
	in    election.Input
	out   election.Output
	note  string // instead of a step
}

// trace keeps the newest records, and writes each at once to live, if there is
// one.
type trace struct {
	ring []record
	n    int
	live io.Writer
}

// wanted reports whether anybody will read the trace.
func (t *trace) wanted() bool { return t.live != nil || len(t.ring) > 0 }

func (t *trace) add(r record) {
	if t.live != nil {
		_, _ = fmt.Fprintln(t.live, r.String())
	}
	if len(t.ring) > 0 {
		t.ring[t.n%len(t.ring)] = r
	}
	t.n++
}

// lines returns what is kept, oldest first.
func (t *trace) lines() []string {
	var lines []string
	for i := max(0, t.n-len(t.ring)); i < t.n && len(t.ring) > 0; i++ {
		lines = append(lines, t.ring[i%len(t.ring)].String())
	}
	return lines
}

func (r record) String() string {
	at := time.Duration(r.at).Round(time.Microsecond).String()
	if r.agent == nil {
		return fmt.Sprintf("%-12s          -- %s", at, r.note)
	}
	who := fmt.Sprintf("%s/%d", r.agent.peer, r.life)
	if r.in == nil {
		return fmt.Sprintf("%-12s %-8s -- %s", at, who, r.note)
	}
	return fmt.Sprintf("%-12s %-8s [%d] %s%s", at, who, r.local, describe(r.in), describeOutput(r.out))
}

func describeOutput(o election.Output) string {
	var b strings.Builder
	for _, w := range o.Withdraw {
		fmt.Fprintf(&b, "\n      WITHDRAW %s@%d stop by %d: %s", w.Election, w.Term, w.StopBy, w.Reason)
	}
	if o.Persist != nil {
		fmt.Fprintf(&b, "\n      PERSIST #%d %s", o.Persist.Write, describeState(o.Persist.State))
	}
	for _, e := range o.Send {
		fmt.Fprintf(&b, "\n      -> %s %s", e.To, describe(e.Message))
	}
	for _, a := range o.Announce {
		fmt.Fprintf(&b, "\n      ANNOUNCE %s %s %s@%d: %s", a.Election, a.Event, a.Leader, a.Term, a.Reason)
	}
	for _, r := range o.Replies {
		text := "done"
		if r.Refusal != nil {
			text = words.Refusal(r.Refusal).Message
		}
		fmt.Fprintf(&b, "\n      REPLY %d %s %v", r.Request, text, r.Leader)
	}
	if o.WakeAt != election.Never {
		fmt.Fprintf(&b, "\n      wake %d", o.WakeAt)
	}
	return b.String()
}

func describeState(s election.State) string {
	text := describeRoster(s.Roster)
	if s.Pending != nil {
		text += fmt.Sprintf(" pending %s#%d", s.Pending.Proposer, s.Pending.Attempt)
	}
	for _, name := range s.Elections() {
		g := s.Grants[name]
		text += fmt.Sprintf(" %s@%d=%s", name, g.Term, g.Holder)
		if g.Released {
			text += "(released)"
		}
	}
	return text
}

func describeRoster(r *election.Roster) string {
	if r == nil {
		return "roster -"
	}
	text := fmt.Sprintf("roster v%d.%d floor %d [", r.Version.Driver, r.Version.Counter, r.Floor)
	for _, v := range r.Voters {
		text += " " + string(v.Peer)
	}
	if r.Joint() {
		text += " |"
	}
	for _, v := range r.Next {
		text += " " + string(v.Peer)
	}
	return text + " ]"
}

// describe writes a message or an input in one line.
func describe(x any) string {
	switch x := x.(type) {
	case election.Received:
		return fmt.Sprintf("<- %s %s", x.From, describe(x.Message))
	case election.VoteRequest:
		return fmt.Sprintf("VoteRequest %s@%d send %d prio %d %s", x.Election, x.Term, x.Send, x.Rank.Priority, describeRoster(&x.Roster))
	case election.VoteRefusal:
		return fmt.Sprintf("VoteRefusal %s@%d reason %d granted %d to %s for %v %s", x.Election, x.Term, x.Reason,
			x.Granted, x.GrantedTo, x.Remaining, describeRoster(x.Roster))
	case election.HeartbeatAck:
		return fmt.Sprintf("HeartbeatAck send %d version %v nacks %v %s", x.Send, x.Version, x.Nacks, describeRoster(x.Roster))
	case election.Report:
		return fmt.Sprintf("Report %d voter %v standings %v %s", x.ID, x.Voter, x.Standings, describeRoster(x.Roster))
	case election.RosterPropose:
		return fmt.Sprintf("RosterPropose driver %d %s", x.Driver, describeRoster(&x.Roster))
	case election.RosterRefuse:
		return fmt.Sprintf("RosterRefuse driver %d version %v granted %d %s", x.Driver, x.Version, x.Granted, describeRoster(x.Roster))
	case election.ViewChanged:
		text := "ViewChanged"
		for _, m := range x.View.Members {
			text += fmt.Sprintf(" %s/%s%v", m.Peer, m.Boot, m.Candidacies)
			if m.Draining {
				text += "(draining)"
			}
			if m.Suspected {
				text += "(suspected)"
			}
		}
		return text
	}
	return fmt.Sprintf("%s %+v", reflect.TypeOf(x).Name(), x)
}
