// Package loop is the one goroutine that owns the elector. Run takes one input at a time: from the
// timer, the transport, gossip, the writer, and the programs and operators of this host. feed gives
// the input to the elector, shows readers the outcome (publish), and carries out the output in the
// order of its fields:
//
//	Record     Record.Write: before readers see anything of the outcome
//	Withdraw   withdraw (announce.go) notifies the program that acts and the companion,
//	           by package actors. Once both have stopped, the input Stopped follows: their
//	           receipts come by Receipt (campaigns.go).
//	Persist    the writer makes the state durable, on another goroutine (writer.go)
//	Send       to the transport; Redial makes it connect again
//	Announce   announce (announce.go) notifies the new leader's program and the companion,
//	           the watches and the history
//	Replies    to the callers of commands
//
// # Guarantees
//
// Programs are notified of the end of a leadership before its term is released. State is durable
// before any message is sent that depends on it. Messages are sent before changes are announced.
// Readers see an immutable picture, and never a lease that has expired. All queues are bounded.
//
// The package does not guarantee that a program which ignores its deadline stops acting.
package loop

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/keeper"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

const (
	maxPending = 256 // commands that may wait for the elector's reply
	maxBatch   = 32  // network events handled before readers see the outcome
)

// Config is what the loop needs to work.
type Config struct {
	Core     core
	Network  network
	Gossip   gossip
	Writer   *Writer
	Past     *record.Past     // what the earlier life left; nil: there was no earlier life
	Drained  func() time.Time // since when the agent is drained, also across restarts; zero: it is not drained
	Expected []election.Name  // elections that should always have a candidate, sorted
	// Actors are the candidates of this host. Only the goroutine of Run uses them.
	Actors    *actors.Registry
	Hub       *watch.Hub
	Pages     *pages.Keeper        // keeps the lease pages
	Record    *record.Record       // nil: no record is kept
	Words     []election.NamedWord // the words that this voter had on disk at the start
	NoRecord  string               // why no record is kept; empty: one is kept
	Known     []record.Voter       // voters on record that gossip has not shown yet
	Clock     func() election.Instant
	Suspended func() bool  // whether the host was suspended since the last call
	Life      *keeper.Life // this life's side of the keeper's page; nil: no keeper judges whether this life hangs
	Lease     time.Duration
	Heartbeat time.Duration
	Voters    []string          // names in the first roster, as configured
	Given     election.Settings // the settings that the configuration names; zero: it names none
	Self      election.Holder
	Name      string
	Observe   func(time.Duration)    // how long a step took
	Adopt     func(*election.Roster) // called with each new roster
	Logger    *slog.Logger
}

// Loop owns the elector. It gives the elector inputs in the order in which they come, and
// carries out its outputs.
type Loop struct {
	Config
	calls    chan func()
	Shutdown chan struct{} // closed by Release: hand over everything
	Released chan struct{} // closed by the loop: everything is released
	Followed chan struct{} // closed by the loop: others lead what was handed over
	Done     chan struct{} // closed by the loop: it has ended
	picture  atomic.Pointer[serve.Picture]
	History  *history.Log
	Desk     *forward.Desk // makes the calls between agents; nil: none are made
	Leaders  leaders

	// Owned by the goroutine of Run.
	timer *time.Timer
	lateness
	peers
	given     given
	queue     []election.Input // inputs that the output of a step caused
	requests  election.RequestID
	pending   pending
	presence  presence
	roster    *election.Roster
	led       bool // this agent has led an election in this life
	draining  bool
	drainedAt time.Time // since when this agent is drained; zero: it is not
	stopping  bool
	handed    []election.Name // elections that this agent led when the stop was asked for, and that had other candidates
	warnings  warnings
	jobs      jobBook
	shown     shown                    // what watches were sent
	unshown   bool                     // steps were taken that the picture does not show yet
	prolonged []*elector.ContestStatus // the elections, as the last call of prolong saw them
}

func New(c Config) *Loop {
	l := &Loop{
		Config: c,
		calls:  make(chan func()), Shutdown: make(chan struct{}), Released: make(chan struct{}),
		Followed: make(chan struct{}), Done: make(chan struct{}),
		timer:    time.NewTimer(time.Hour),
		lateness: lateness{due: election.Never, writingSince: election.Never},
		pending:  pending{},
		presence: newPresence(c.Lease),
		peers: peers{view: &membership.View{}, heard: map[election.PeerID]election.Instant{}, lost: map[election.PeerID]election.Instant{},
			connected: map[election.PeerID]bool{}, guests: map[election.PeerID]guest{}},
		History: history.New(int64(c.Clock()), string(election.Default)),
		warnings: warnings{grace: c.Lease, logger: c.Logger, begun: map[api.Warning]begun{}, dueAt: election.Never,
			refused: map[election.PeerID]api.Warning{}, current: []api.Warning{}},
	}
	l.jobs.note(election.Persist{Words: c.Words})
	l.publish(l.Clock())
	l.shown = shown{metas: l.picture.Load(), candidates: l.picture.Load(), dueAt: election.Never}
	return l
}

// Run gives the elector its inputs until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	defer close(l.Done)
	defer l.Actors.Close(whyAgentStops)
	defer l.timer.Stop()
	l.enterRestart(l.Clock())
	l.proveAbsent()
	if !l.Drained().IsZero() {
		l.Logger.Warn("still drained after restart: this agent can't be elected until `doyen drain off`")
		l.queue = append(l.queue, election.Drain{On: true})
	}
	l.queue = append(append(l.queue, l.Actors.Take()...), election.Tick{})
	shutdown := l.Shutdown
	for {
		l.drainQueue()
		select {
		case <-ctx.Done():
			return
		case <-l.timer.C:
			l.step(election.Tick{})
		case <-l.Network.Ready():
			l.take()
		case v := <-l.Gossip.Views():
			l.viewed(v)
		case result := <-l.Writer.results:
			now := l.resume() // a suspend must be reported first, as in step
			l.doubt(now)
			l.writingSince = election.Never
			l.feed(now, result)
		case <-l.Pages.Ready():
			l.publish(l.Clock())
		case f := <-l.calls:
			l.resume()
			f()
		case <-shutdown:
			shutdown = nil
			l.stopping = true
			l.handed = l.ledWithHeirs()
			l.step(election.Shutdown{})
		}
	}
}

// drainQueue gives the elector the inputs that its last step caused, such as the receipt for a
// leadership under which nothing acted.
func (l *Loop) drainQueue() {
	for {
		l.review()
		if l.queue = append(l.queue, l.Actors.Take()...); len(l.queue) == 0 {
			break
		}
		in := l.queue[0]
		l.queue = l.queue[1:]
		l.step(in)
	}
	l.reportReleased()
}

// take handles the waiting network events, at most maxBatch. Steps that only renew leases or count
// something share one picture: with a thousand elections a picture costs more than a message.
func (l *Loop) take() {
	for range maxBatch {
		e, ok := l.Network.Next()
		if !ok {
			break
		}
		l.event(e)
		l.drainQueue()
	}
	if l.unshown {
		l.publish(l.Clock())
		l.prolong()
		l.shown.update(l, l.Clock())
	}
}

// step gives the elector one input. If the host was suspended, the input Suspended comes first:
// events from before and after a suspend must not be counted together.
func (l *Loop) step(in election.Input) {
	now := l.resume()
	l.doubt(now)
	l.feed(now, in)
}

// resume reports a suspend to the elector, if there was one. It returns an instant, and the elector knows of every
// suspend before that instant: resume reads the clock first, and then checks for a suspend.
func (l *Loop) resume() election.Instant {
	l.notePause(l.History, l.Clock())
	for {
		now := l.Clock()
		if !l.Suspended() {
			return now
		}
		l.Logger.Warn("this host was suspended: this agent leads nothing any more, and votes for no new leader for a lease")
		l.feed(l.Clock(), election.Suspended{})
		l.Record.Suspended()
	}
}

// feed gives the elector one input and carries out the output. It writes the record first, so that
// the next life knows everything that anybody could see. Readers see the outcome before any message
// is sent: a leadership that ends is gone from the picture before it is released.
func (l *Loop) feed(now election.Instant, in election.Input) {
	before := l.picture.Load()
	out := l.Core.Step(now, in)
	l.Record.Write(out.Record)
	if l.unshown = quietly(in, out); !l.unshown {
		l.publish(now)
	}
	l.Actors.Advance(now) // like the elector in this step, the registry stops waiting for receipts whose deadline has passed
	for _, w := range out.Withdraw {
		l.withdraw(w)
	}
	if out.Persist != nil {
		l.writingSince = now
		l.jobs.note(*out.Persist)
		l.Writer.requests <- *out.Persist // never blocks: the elector has one write at a time
	}
	for _, e := range out.Send {
		l.Network.Send(e.To, e.Message)
	}
	for _, p := range out.Redial {
		l.Network.Suspect(p)
	}
	for _, a := range out.Announce {
		l.announce(now, before, a)
	}
	for _, r := range out.Replies {
		l.pending.answer(r)
	}
	if !l.unshown {
		l.prolong()
		l.shown.update(l, now)
	}
	l.arm(now, min(out.WakeAt, l.warnings.dueAt, l.Actors.WakeAt(), l.presence.dueAt, l.shown.dueAt))
	l.Observe(l.Clock().Sub(now))
}

// quietly reports whether readers may see the outcome of a step a few messages later, because no
// leadership starts or ends and nobody waits for a reply.
func quietly(in election.Input, out election.Output) bool {
	_, message := in.(election.Received)
	return message && len(out.Withdraw) == 0 && len(out.Announce) == 0 && len(out.Replies) == 0
}

func (l *Loop) arm(now, wake election.Instant) {
	wake = election.Instant(l.Life.Ticks(int64(now), int64(wake)))
	l.due = max(now, wake)
	l.Leaders.wake(l.due)
	if wake == election.Never {
		l.timer.Stop()
		return
	}
	// Go's timers stop during a suspend of the host. Then they ring late, by up to the time that
	// they still had to wait. Heartbeats and leases bound that time.
	l.timer.Reset(max(0, wake.Sub(now)))
}

// event handles one event of the transport.
func (l *Loop) event(e transport.Event) {
	switch e := e.(type) {
	case transport.Message:
		l.heard[e.Peer] = l.Clock()
		if l.Desk != nil && l.Desk.Received(e.Peer, e.Message) {
			return
		}
		l.step(election.Received{From: e.Peer, Message: e.Message})
	case transport.Connected:
		l.heard[e.Peer] = l.Clock()
		delete(l.lost, e.Peer)
		l.connect(e.Peer, true)
		delete(l.warnings.refused, e.Peer)
		l.Logger.Info("peer connected", "peer", e.Peer, "name", e.Hello.Name)
		if l.peers.admit(l.Clock(), e, l.Gossip, l.Network) {
			l.viewed(l.news)
		}
		l.step(election.PeerConnected{Peer: e.Peer, Lineage: e.Hello.Lineage, Run: e.Hello.Run, Level: e.Hello.Level, Heartbeat: e.Hello.Heartbeat})
	case transport.Lost:
		delete(l.heard, e.Peer)
		l.lose(e.Peer, l.Clock())
		l.connect(e.Peer, false)
		l.Logger.Info("peer lost", "peer", e.Peer, "name", l.names.Of(e.Peer), "err", e.Err)
		l.step(election.PeerLost{Peer: e.Peer})
		if _, is := l.guests[e.Peer]; is {
			delete(l.guests, e.Peer)
			l.viewed(l.news)
		}
	case transport.Refused:
		l.warnings.refuse(e)
		l.publish(l.Clock())
	}
}

// publish replaces what readers see.
func (l *Loop) publish(now election.Instant) {
	l.unshown = false
	status := l.Core.Status(now)
	if l.names == nil || l.roster != status.Roster {
		if l.roster != status.Roster {
			l.roster = status.Roster
			l.reach()
		}
		l.Adopt(status.Roster)
		l.names = namesOf(l.Self.Peer, l.Name, l.view, status.Roster)
		l.warnings.adopted(l.Self.Peer, l.Name, status.Roster)
	}
	l.Pages.Publish(now, status)
	picture := &serve.Picture{
		Status: status, View: l.view, Names: l.names, Connected: l.connected, Expected: l.Expected,
		Unhealthy: l.Actors.Companions().Unable(election.Default), Jobs: l.jobs,
		Warnings: l.warnings.update(now, l.otherWarnings(now, status), l.Writer.problem()),
	}
	l.Leaders.show(now, picture)
	l.picture.Store(picture)
	if status.Draining != l.draining {
		l.drain(status.Draining)
	}
}

// These are the loop's needs of other parts, as interfaces that a test can implement.
type (
	// core is the elector, which decides. Only one goroutine uses it.
	core interface {
		Step(election.Instant, election.Input) election.Output
		Status(election.Instant) *elector.Status
		HandingOver() bool
	}
	// network carries messages to peers; none of its methods blocks.
	network interface {
		Send(election.PeerID, election.Message) bool
		SetPeers([]transport.Peer)
		VotersOnly(bool)
		Suspect(election.PeerID)
		Dismiss(...election.PeerID)
		Unsendable() string
		Ready() <-chan struct{}
		Next() (transport.Event, bool)
	}
	// gossip knows the members.
	gossip interface {
		Views() <-chan membership.View
		Introduced(from election.PeerID, advert, proof []byte, gossip netip.AddrPort) (membership.Member, error)
		Update(func(*membership.Member)) error
	}
	// disk makes a state durable. It blocks until that is done.
	disk interface {
		Write(election.Persist) error
	}
)
