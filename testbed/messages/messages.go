// Package messages puts into text what agents send, receive and ask for, for traces, diagrams and
// reports of failed tests. Brief uses a few words, Describe has all that matters. The text is for
// people: no program reads it.
package messages

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// Brief names a message as the literature does. It adds the election, unless that is the
// default one.
func Brief(m election.Message) string {
	switch m := m.(type) {
	case election.BullyElection:
		return about("Election", m.Election, "round %d", m.Round)
	case election.BullyAnswer:
		return about("Answer", m.Election, "round %d", m.Round)
	case election.BullyDecline:
		return about("Decline", m.Election, "round %d", m.Round)
	case election.BullyCoordinator:
		return about("Coordinator", m.Election, "term %d", m.Term)
	case election.RingElection:
		return about("Election", m.Election, "best %s round %d", m.Best.Peer, m.Round.Number)
	case election.RingAck:
		return about("Ack", m.Election, "best %s round %d", m.Best, m.Round.Number)
	case election.RingElected:
		return about("Elected", m.Election, "%s term %d", m.Leader.Peer, m.Term)
	case election.VoteRequest:
		return about("Vote Request", m.Election, "term %d", m.Term)
	case election.VoteGrant:
		text := about("Vote Grant", m.Election, "term %d", m.Term)
		if m.Word != (election.Word{}) {
			text += ", word " + Word(m.Word)
		}
		return text
	case election.WordWrite:
		return about("Word Write", m.Election, "%s", Word(m.Word))
	case election.WordsWanted:
		return "Words Wanted at " + version(m.Version)
	case election.Words:
		text := "Words at " + version(m.Version)
		for _, w := range m.Words {
			text += " " + string(w.Election) + " " + Word(w.Word)
		}
		return text
	case election.WordAck:
		return about("Word Ack", m.Election, "%s", wordRank(m.Rank))
	case election.VoteRefusal:
		return about("Vote Refusal", m.Election, "term %d, has %d", m.Term, m.Granted)
	case election.Release:
		text := about("Release", m.Election, "term %d", m.Term)
		if m.Target != "" {
			text += " for " + string(m.Target)
		}
		return text
	case election.Heartbeat:
		text := "Heartbeat"
		for _, c := range m.Claims {
			text += fmt.Sprintf(" %s@%d", c.Election, c.Term)
		}
		return text
	case election.HeartbeatAck:
		if len(m.Nacks) > 0 {
			return fmt.Sprintf("Heartbeat Ack, nacks %v", m.Nacks)
		}
	case election.RosterPropose:
		return "Roster Propose " + Roster(&m.Roster)
	case election.RosterAccept:
		return fmt.Sprintf("Roster Accept %s, knows term %d%s", version(m.Version), m.Highest,
			[...]string{"", ", has words", ", has caught up"}[min(m.Words, election.CaughtUp)])
	case election.RosterRefuse:
		return "Roster Refuse " + version(m.Version)
	}
	return wordStart.ReplaceAllString(reflect.TypeOf(m).Name(), "$1 $2")
}

var wordStart = regexp.MustCompile(`([a-z])([A-Z])`)

func about(what string, name election.Name, format string, args ...any) string {
	if name != election.Default {
		what += " " + string(name)
	}
	return what + " " + fmt.Sprintf(format, args...)
}

// Describe writes a message or an input as one line.
func Describe(x any) string {
	switch x := x.(type) {
	case election.Received:
		return fmt.Sprintf("<- %s %s", x.From, Describe(x.Message))
	case election.VoteRequest:
		return fmt.Sprintf("VoteRequest %s@%d of %s send %d prio %d %s", x.Election, x.Term, x.Holder, x.Send, x.Rank.Priority, Roster(&x.Roster))
	case election.VoteGrant:
		text := fmt.Sprintf("VoteGrant {Election:%s Term:%d Holder:%s Send:%d Version:%+v Stamp:%d}", x.Election, x.Term, x.Holder, x.Send, x.Version, x.Stamp)
		if x.Word != (election.Word{}) {
			text += " word " + Word(x.Word)
		}
		return text
	case election.WordWrite:
		return fmt.Sprintf("WordWrite %s of %s version %v %s", x.Election, x.Holder, x.Version, Word(x.Word))
	case election.VoteRefusal:
		return fmt.Sprintf("VoteRefusal %s@%d reason %d granted %d to %s for %v %s", x.Election, x.Term, x.Reason,
			x.Granted, x.GrantedTo, x.Remaining, Roster(x.Roster))
	case election.HeartbeatAck:
		return fmt.Sprintf("HeartbeatAck send %d version %v nacks %v %s", x.Send, x.Version, x.Nacks, Roster(x.Roster))
	case election.Report:
		return fmt.Sprintf("Report %d voter %v records %v %s", x.ID, x.Voter, x.Records, Roster(x.Roster))
	case election.RosterPropose:
		return fmt.Sprintf("RosterPropose driver %d %s", x.Driver, Roster(&x.Roster))
	case election.RosterRefuse:
		return fmt.Sprintf("RosterRefuse driver %d version %v granted %d %s", x.Driver, x.Version, x.Granted, Roster(x.Roster))
	case election.ViewChanged:
		text := "ViewChanged"
		for _, m := range x.View.Members {
			text += fmt.Sprintf(" %s/%s%v", m.Peer, m.Lineage, m.Candidacies)
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

func Output(o election.Output) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\n      "+format, args...) }
	for _, w := range o.Withdraw {
		line("WITHDRAW %s@%d stop by %d: %s", w.Election, w.Term, w.StopBy, w.Reason)
	}
	if o.Persist != nil {
		line("PERSIST #%d %s", o.Persist.Write, Persist(o.Persist))
	}
	for _, e := range o.Send {
		line("-> %s %s", e.To, Describe(e.Message))
	}
	for _, p := range o.Redial {
		line("REDIAL %s", p)
	}
	for _, a := range o.Announce {
		line("ANNOUNCE %s %s %s@%d: %s", a.Election, a.Event, a.Leader, a.Term, a.Reason)
	}
	for _, r := range o.Replies {
		text := "done"
		if r.Refusal != nil {
			text = "refused: " + string(r.Refusal.Why)
		}
		line("REPLY %d %s %v", r.Request, text, r.Leader)
	}
	if o.WakeAt != election.Never {
		line("wake %d", o.WakeAt)
	}
	return b.String()
}

// Persist describes what is to be written.
func Persist(p *election.Persist) string {
	text := "words only"
	if p.State != nil {
		text = State(*p.State)
	}
	for _, w := range p.Words {
		text += fmt.Sprintf(" %s=%s", w.Election, Word(w.Word))
	}
	return text
}

// Word describes a word by its rank, its ID if the ID is not the rank, and its text.
func Word(w election.Word) string {
	if w.ID == w.Rank {
		return fmt.Sprintf("%s %q", wordRank(w.Rank), w.Text)
	}
	return fmt.Sprintf("%s (%s) %q", wordRank(w.Rank), wordRank(w.ID), w.Text)
}

// wordRank writes the rank of a word: a term, a life and a counter.
func wordRank(r election.WordRank) string {
	return fmt.Sprintf("%d.%d.%d", r.Term, r.Seq>>40, r.Seq&(1<<40-1))
}

func State(s election.State) string {
	text := Roster(s.Roster)
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

func Roster(r *election.Roster) string {
	switch {
	case r == nil:
		return "no roster"
	case !r.Joint():
		return fmt.Sprintf("%s stable %s floor %d", version(r.Version), voters(r.Voters), r.Floor)
	}
	text := fmt.Sprintf("%s joint %s + %s floor %d", version(r.Version), voters(r.Voters), voters(r.Next), r.Floor)
	if r.Committed {
		text += " (committed)"
	}
	return text
}

func version(v election.Version) string { return fmt.Sprintf("v%d.%d", v.Driver, v.Counter) }

func voters(all []election.Voter) string {
	return strings.Join(each.Of(all, func(v election.Voter) string { return string(v.Peer) }), ",")
}
