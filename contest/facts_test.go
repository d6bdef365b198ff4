package contest_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/messages"
)

const (
	heartbeat = 200 * time.Millisecond
	lease     = 1200 * time.Millisecond
	start     = election.Instant(time.Hour)
)

// world is one contest of agent a, which is a voter like b and c, with facts that the test sets.
// Clocks do not drift here: a lease counts in full from the send.
type world struct {
	*contest.Contest
	cfg    election.Config
	counts contest.Counts

	now, promiseEnd, holdEnd, informedBy election.Instant
	roster                               *election.Roster
	obstacle                             election.Obstacle
	doubts, stuck, full, closed, stops   bool
	granted                              election.Grant
	others                               []election.Rank // candidates
	gone, mute, elsewhere                []election.PeerID
	suspectAt, connectsBy                election.Instant

	chooser chooser
	send    election.SendID
}

func self() election.Holder { return holderOf("a") }

func holderOf(p election.PeerID) election.Holder { return election.Holder{Peer: p, Lineage: 7} }

func rank(p election.PeerID, priority int) election.Rank {
	return election.Rank{Priority: priority, JoinedAt: int64(p[0]), Peer: p}
}

func newWorld(name election.Name, edit func(*world)) *world {
	w := &world{now: start, suspectAt: election.Never, roster: &election.Roster{Cluster: "x", Version: election.Version{Counter: 1},
		Voters: []election.Voter{{Name: "a", Peer: "a"}, {Name: "b", Peer: "b"}, {Name: "c", Peer: "c"}}}}
	w.cfg = election.Config{Self: self(), JoinedAt: 'a', Quorum: true, Timing: election.Timing{Heartbeat: heartbeat, Lease: lease},
		Preempt: true, PreemptDelay: time.Second, Rand: rand.New(rand.NewPCG(1, 2))}
	if edit != nil {
		edit(w)
	}
	w.Contest = contest.New(name, &w.cfg, &w.counts, &w.chooser, 0, 0)
	w.Stand(true, 100)
	return w
}

func (w *world) Now() election.Instant        { return w.now }
func (w *world) Roster() *election.Roster     { return w.roster }
func (w *world) Obstacle() election.Obstacle  { return w.obstacle }
func (w *world) Doubts() bool                 { return w.doubts }
func (w *world) Writes() bool                 { return !w.stuck }
func (w *world) Full() bool                   { return w.full }
func (w *world) Closed() bool                 { return w.closed || w.full }
func (w *world) Granted() election.Grant      { return w.granted }
func (w *world) PromiseEnd() election.Instant { return w.promiseEnd }
func (w *world) HoldEnd() election.Instant    { return w.holdEnd }
func (w *world) Connected() []election.PeerID {
	return slices.DeleteFunc([]election.PeerID{"b", "c"}, func(p election.PeerID) bool { return slices.Contains(w.gone, p) })
}
func (w *world) Informed() (bool, election.Instant) { return w.now >= w.informedBy, w.informedBy }
func (w *world) FirstTurn() election.Instant {
	return 0
}
func (w *world) Candidates() iter.Seq[election.Rank] { return slices.Values(w.others) }
func (w *world) Best() election.Rank {
	var best election.Rank
	for _, r := range w.others {
		if best.Peer == "" || r.Above(best) {
			best = r
		}
	}
	return best
}
func (w *world) Runs(h election.Holder) bool      { return !slices.Contains(w.gone, h.Peer) }
func (w *world) ConnectsBy() election.Instant     { return w.connectsBy }
func (w *world) Silent(p election.PeerID) bool    { return slices.Contains(w.mute, p) }
func (w *world) Votes(p election.PeerID) bool     { return w.roster.Has(p) }
func (w *world) Reachable(p election.PeerID) bool { return !slices.Contains(w.gone, p) }
func (w *world) StopsSoon(p election.PeerID) bool { return p == "a" && w.stops }
func (w *world) SharesRoster(p election.PeerID) bool {
	return !slices.Contains(w.elsewhere, p)
}
func (w *world) SuspectAt(election.PeerID) election.Instant { return w.suspectAt }

// chooser is a selection that nominates this agent when the test asks.
type chooser struct {
	nominates, active bool
	did               []string // what it was asked
}

func (s *chooser) Start(election.Instant, election.Field) election.Verdict {
	s.active = true
	s.did = append(s.did, "starts a round")
	return election.Verdict{Nominee: s.nominates, WakeAt: election.Never}
}

func (s *chooser) Receive(election.Instant, election.Field, election.PeerID, election.Message) election.Verdict {
	s.did = append(s.did, "answers")
	return election.Verdict{Nominee: s.nominates, WakeAt: election.Never}
}

func (s *chooser) Tick(election.Instant, election.Field) election.Verdict {
	return election.Verdict{WakeAt: election.Never}
}

func (s *chooser) StandBack(_ election.Instant, _ election.Field, better election.Rank) {
	s.did = append(s.did, "waits for "+string(better.Peer))
}

func (s *chooser) Stop()        { s.active = false }
func (s *chooser) Active() bool { return s.active }

func (s *chooser) Nominated(election.Field, func(election.PeerID) bool) []election.Envelope {
	return nil
}
func (s *chooser) Confirmed(election.Field, election.Leadership) []election.Envelope { return nil }

// after lets time pass.
func (w *world) after(d time.Duration) *world {
	w.now = w.now.Add(d)
	return w
}

// beat makes the leader claim its term in a heartbeat, and returns the heartbeat's number.
func (w *world) beat() election.SendID {
	w.send++
	w.Claim(w.now, w.send)
	return w.send
}

func (w *world) grants(from election.PeerID, t election.Term) contest.Verdict {
	return w.VoteGranted(w, from, election.VoteGrant{Election: w.Name(), Term: t, Holder: self(), Version: w.roster.Version}, w.now, true)
}

func (w *world) refuses(from election.PeerID, t election.Term, why election.RefusalReason, known election.Term) contest.Verdict {
	return w.VoteRefused(w, from, election.VoteRefusal{Election: w.Name(), Term: t, Holder: self(), Reason: why, Granted: known})
}

func (w *world) claims(p election.PeerID, t election.Term, until election.Instant) contest.Verdict {
	return w.Claimed(w, contest.Known{Holder: holderOf(p), Term: t, Rank: rank(p, 100), Heard: w.now, Until: until}, w.now)
}

func (w *world) releases(p election.PeerID, t election.Term, target election.PeerID, standDown time.Duration) contest.Verdict {
	return w.Released(w, election.Release{Election: w.Name(), Term: t, Holder: holderOf(p), Target: target, StandDown: standDown})
}

func (w *world) nominee() *world {
	w.chooser.nominates = true
	w.Advance(w)
	w.chooser.did = nil
	return w
}

func (w *world) leader() *world {
	w.nominee()
	w.grants("a", 1)
	w.grants("b", 1)
	w.Advance(w)
	return w
}

func (w *world) follows(p election.PeerID, t election.Term) *world {
	w.claims(p, t, w.now.Add(lease))
	return w
}

// brief puts into one line what a verdict asks for, and the contest's state after it.
func (w *world) brief(v contest.Verdict) string {
	var all []string
	say := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	for _, x := range v.StepDown {
		say(true, "withdraws from %d by %s: %s", x.Term, w.since(x.StopBy), x.Reason)
	}
	say(v.Remember != 0, "remembers %d", v.Remember)
	to := map[string][]string{}
	var sent []string
	for _, m := range v.Send {
		text := messages.Brief(m.Message)
		if to[text] == nil {
			sent = append(sent, text)
		}
		to[text] = append(to[text], string(m.To))
	}
	for _, text := range sent {
		say(true, "%s to %s", text, strings.Join(to[text], ","))
	}
	for _, a := range v.Announce {
		say(true, "announces %s %s %d", a.Event, a.Leader.Peer, a.Term)
	}
	all = append(all, w.chooser.did...)
	w.chooser.did = nil
	say(v.Again, "again")
	say(v.Queue, "waits in the queue")
	say(v.Beat, "beats")
	say(v.Late, "late")
	say(v.Expired != "", "%s has expired", v.Expired)
	say(w.counts.Suspicions > 0, "suspects")
	say(w.counts.TermLeaps > 0, "leap")
	say(v.WakeAt != election.Never && v.WakeAt != 0, "wakes %s", w.since(v.WakeAt))
	return strings.Join(append(all, [...]string{"follower", "nominee", "leader", "leaving"}[w.Role()]), "; ")
}

func (w *world) since(i election.Instant) string {
	return fmt.Sprintf("%+d", i.Sub(w.now).Milliseconds())
}

func (w *world) restrict(to election.PeerID) {
	r := *w.roster
	r.Rights = []election.Right{{Election: w.Name(), Agents: []election.PeerID{to}}}
	w.roster = &r
}

func (w *world) raiseFloor(to election.Term) {
	r := *w.roster
	r.Floor = to
	w.roster = &r
}

func (w *world) refuseAll(t election.Term) {
	for _, v := range []election.PeerID{"a", "b", "c"} {
		w.refuses(v, t, election.RefusedPromised, 0)
	}
}

func (w *world) refuseLeap() {
	for _, v := range []election.PeerID{"b", "c"} {
		w.refuses(v, 1, election.RefusedLeap, 0)
	}
}

func (w *world) stale(from election.PeerID, t election.Term) {
	w.VoteGranted(w, from, election.VoteGrant{Election: w.Name(), Term: t, Holder: self(), Version: w.roster.Version}, w.now, false)
}

func (w *world) otherVersion(from election.PeerID, t election.Term) {
	w.VoteGranted(w, from, election.VoteGrant{Election: w.Name(), Term: t, Holder: self()}, w.now, true)
}

// nacks makes a voter refuse to renew the leader's term, because the voter has another term on record.
func (w *world) nacks(from election.PeerID, known election.Term) contest.Verdict {
	v := w.Nacked(w, from, w.beat(), election.Nack{Election: w.Name(), Term: known})
	return v
}

// renew makes two voters renew the leader's term for a lease from now.
func (w *world) renew() *world { return w.renewBy("a", "b") }

func (w *world) renewBy(voters ...election.PeerID) *world {
	send := w.beat()
	for _, v := range voters {
		w.Renewed(v, &election.HeartbeatAck{Send: send, Version: w.roster.Version}, w.now)
	}
	return w
}

// renewed makes two voters answer that heartbeat now.
func (w *world) renewed(send election.SendID) {
	for _, v := range []election.PeerID{"a", "b"} {
		w.Renewed(v, &election.HeartbeatAck{Send: send, Version: w.roster.Version}, w.now)
	}
}

// late brings a vote half a heartbeat after the request, and old brings one a whole heartbeat after it.
func (w *world) late(from election.PeerID, t election.Term) { w.answers(from, t, heartbeat/2) }
func (w *world) old(from election.PeerID, t election.Term)  { w.answers(from, t, heartbeat) }

func (w *world) answers(from election.PeerID, t election.Term, after time.Duration) {
	w.VoteGranted(w, from, election.VoteGrant{Election: w.Name(), Term: t, Holder: self(), Version: w.roster.Version}, w.now.Add(-after), true)
}

// reports makes a voter report a term of that leader, whose promise still runs.
func (w *world) reports(p election.PeerID, t election.Term) {
	w.Record(w, election.Record{Election: w.Name(), Term: t, Holder: holderOf(p), Remaining: lease})
}

func (w *world) resign() contest.Verdict { return w.StepDown(w, election.ReasonResigned, "") }

// past is what a former life left on record of a term. If the reason why it ended is empty, it has not ended.
func (w *world) past(t election.Term, why election.Reason) election.Authority {
	a := election.Authority{Election: w.Name(), Highest: t, Term: t, Until: w.now.Add(lease / 2), Priority: 100}
	if why != "" {
		a.Ending = election.Ending{Reason: why, StopBy: a.Until}
	}
	return a
}

func (w *world) lease(t election.Term) *quorum.Lease {
	return quorum.ResumeLease(t, lease, 0, w.roster, w.now.Add(lease/2))
}
