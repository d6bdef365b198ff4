package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/keeper"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

const (
	maxAsks    = 64  // commands waiting for the loop
	maxPending = 256 // commands waiting for the elector's reply
	maxBatch   = 32  // events of the network handled before readers see their outcome
)

// loopConfig is what the loop works with.
type loopConfig struct {
	core    core
	network network
	gossip  gossip
	writer  *writer
	past    *record.Past // nil: no earlier life
	// wasDrained: the agent was drained when it stopped.
	wasDrained bool
	drained    func() time.Time // since when the agent is drained, as kept over restarts; zero: not known
	expected   []election.Name  // elections that should always have a candidate, sorted
	// campaigns are the candidates of this host; owned by the goroutine of run.
	campaigns *actors.Registry
	hub       *watch.Hub
	pages     *pages.Keeper  // nil: none are kept
	record    *record.Record // nil: none is kept
	noRecord  string         // why no record is kept; owned by the goroutine of run
	known     []record.Voter // voters on record that gossip has not shown yet
	clock     func() election.Instant
	suspended func() bool  // whether the host was suspended since the last call
	life      *keeper.Life // nil: there is no keeper that waits for ticks
	lease     time.Duration
	heartbeat time.Duration
	voters    []string // names in the first roster, as configured
	self      election.Holder
	name      string
	observe   func(time.Duration)    // how long a step took
	adopt     func(*election.Roster) // called with each new roster
	logger    *slog.Logger
}

// loop owns the elector. It gives the elector inputs in the order in which they come, and
// carries out its outputs.
type loop struct {
	loopConfig
	asks     chan ask
	calls    chan func()
	shutdown chan struct{} // closed: hand over everything
	released chan struct{} // closed by the loop: everything is released
	followed chan struct{} // closed by the loop: others lead what was handed over
	done     chan struct{} // closed by the loop: it has ended
	picture  atomic.Pointer[serve.Picture]
	history  *history.Log
	desk     *forward.Desk // of calls between agents; nil: none are made
	leaders  leaders

	// Owned by the goroutine of run.
	timer *time.Timer
	lateness
	peers
	given     given
	queue     []election.Input // inputs that the output of a step caused
	requests  election.RequestID
	pending   map[election.RequestID]pending
	presence  presence
	roster    *election.Roster
	recorded  []record.Voter   // the voters as last put on record
	recordDue election.Instant // when to look for the record's file; Never: there is no record
	led       bool             // this agent has led something
	draining  bool
	drainedAt time.Time // zero: not drained
	stopping  bool
	handed    []election.Name // elections led at the stop that have other candidates
	warnings  warnings
	unshown   bool                     // steps were taken that no picture shows yet
	prolonged []*elector.ContestStatus // those in the last picture from which programs were sent their leases
}

func newLoop(c loopConfig) *loop {
	l := &loop{
		loopConfig: c,
		asks:       make(chan ask, maxAsks),
		calls:      make(chan func()),
		shutdown:   make(chan struct{}),
		released:   make(chan struct{}),
		followed:   make(chan struct{}),
		done:       make(chan struct{}),
		timer:      time.NewTimer(time.Hour),
		lateness:   lateness{due: election.Never, writingSince: election.Never},
		pending:    map[election.RequestID]pending{},
		presence:   newPresence(c.lease),
		peers:      newPeers(),
		history:    history.New(int64(c.clock()), string(election.Default)),
		warnings:   newWarnings(c.lease, c.logger),
	}
	l.publish(l.clock())
	return l
}

// run gives the elector its inputs until ctx ends.
func (l *loop) run(ctx context.Context) {
	defer close(l.done)
	defer l.campaigns.Close(whyAgentStops)
	defer l.timer.Stop()
	l.enterRestart(l.clock())
	l.proveAbsent()
	if l.wasDrained {
		l.logger.Warn("still drained after restart: this agent can't be elected until `doyen drain off`")
		l.queue = append(l.queue, election.Drain{On: true})
	}
	l.queue = append(append(l.queue, l.campaigns.Take()...), election.Tick{})
	shutdown := l.shutdown
	for {
		l.drainQueue()
		select {
		case <-ctx.Done():
			return
		case <-l.timer.C:
			l.step(election.Tick{})
		case <-l.network.Ready():
			l.take()
		case v := <-l.gossip.Views():
			l.viewed(v)
		case result := <-l.writer.results:
			now := l.resume() // first, as in step
			l.doubt(now)
			l.writingSince = election.Never
			l.feed(now, result)
		case <-l.pages.Ready():
			l.publish(l.clock())
		case f := <-l.calls:
			l.resume()
			f()
		case a := <-l.asks:
			l.ask(a)
		case <-shutdown:
			shutdown = nil
			l.stopping = true
			l.handed = l.ledWithHeirs()
			l.step(election.Shutdown{})
		}
	}
}

// drainQueue gives the elector the inputs that its last step has caused, such as the
// receipt for a leadership under which nothing acted.
func (l *loop) drainQueue() {
	for {
		l.review()
		if l.queue = append(l.queue, l.campaigns.Take()...); len(l.queue) == 0 {
			break
		}
		in := l.queue[0]
		l.queue = l.queue[1:]
		l.step(in)
	}
	l.reportReleased()
}

// take handles the events of the network, up to maxBatch. One picture shows readers the
// outcome of all that only renew leases or count something: with a thousand elections a
// picture costs more than a message.
func (l *loop) take() {
	for range maxBatch {
		e, ok := l.network.Next()
		if !ok {
			break
		}
		l.event(e)
		l.drainQueue()
	}
	if l.unshown {
		l.publish(l.clock())
		l.prolong()
	}
}

// step gives the elector one input. If the host was suspended, the input Suspended comes
// first: what came after a suspend must not count together with what came before.
func (l *loop) step(in election.Input) {
	now := l.resume()
	l.doubt(now)
	l.feed(now, in)
}

// resume reports a suspend to the elector, if there was one. It returns an instant that it
// read before it checked, so the elector knows of every suspend before that instant.
func (l *loop) resume() election.Instant {
	for {
		now := l.clock()
		if !l.suspended() {
			return now
		}
		l.logger.Warn("this host was suspended: this agent leads nothing any more, and votes for no new leader for a lease")
		l.feed(l.clock(), election.Suspended{})
		l.kept(l.record.Suspended())
	}
}

// feed gives the elector one input and carries out the output. The record comes first, so that
// the next life knows all that anybody could see. Readers see the outcome before any message
// leaves, so a leadership that ends is gone from the picture before it is released.
func (l *loop) feed(now election.Instant, in election.Input) {
	before := l.picture.Load()
	out := l.core.Step(now, in)
	l.putOnRecord(out.Record)
	if l.unshown = quietly(in, out); !l.unshown {
		l.publish(now)
	}
	l.campaigns.Advance(now) // the registry gives up the candidacies that the elector gave up
	for _, w := range out.Withdraw {
		l.withdraw(w)
	}
	if out.Persist != nil {
		l.writingSince = now
		l.writer.requests <- *out.Persist // never blocks: the elector has one write at a time
	}
	for _, e := range out.Send {
		l.network.Send(e.To, e.Message)
	}
	for _, p := range out.Redial {
		l.network.Suspect(p)
	}
	for _, a := range out.Announce {
		l.announce(now, before, a)
	}
	for _, r := range out.Replies {
		l.answer(r)
	}
	if !l.unshown {
		l.prolong()
	}
	l.arm(now, min(out.WakeAt, l.warnings.dueAt, l.campaigns.WakeAt(), l.presence.dueAt, l.recordDue))
	l.observe(l.clock().Sub(now))
}

// quietly reports whether readers may see the outcome of a step a few messages later: no
// leadership starts or ends, and nobody waits for a reply.
func quietly(in election.Input, out election.Output) bool {
	_, message := in.(election.Received)
	return message && len(out.Withdraw) == 0 && len(out.Announce) == 0 && len(out.Replies) == 0
}

func (l *loop) arm(now, wake election.Instant) {
	wake = election.Instant(l.life.Ticks(int64(now), int64(wake)))
	l.due = max(now, wake)
	if wake == election.Never {
		l.timer.Stop()
		return
	}
	// Go's timers stop while the host is suspended, and then ring late by the time that they had
	// left. Heartbeats and leases bound that time.
	l.timer.Reset(max(0, wake.Sub(now)))
}

// event handles one event of the transport.
func (l *loop) event(e transport.Event) {
	switch e := e.(type) {
	case transport.Message:
		l.heard[e.Peer] = l.clock()
		if l.desk != nil && l.desk.Received(e.Peer, e.Message) {
			return
		}
		l.step(election.Received{From: e.Peer, Message: e.Message})
	case transport.Connected:
		l.heard[e.Peer] = l.clock()
		delete(l.lost, e.Peer)
		l.connect(e.Peer, true)
		l.warnings.unrefuse(e.Peer)
		l.logger.Info("peer connected", "peer", e.Peer, "name", e.Hello.Name)
		l.step(election.PeerConnected{Peer: e.Peer, Lineage: e.Hello.Lineage, Run: e.Hello.Run, Level: e.Hello.Level, Heartbeat: e.Hello.Heartbeat})
	case transport.Lost:
		delete(l.heard, e.Peer)
		l.lose(e.Peer, l.clock())
		l.connect(e.Peer, false)
		l.logger.Info("peer lost", "peer", e.Peer, "name", l.nameOf(e.Peer), "err", e.Err)
		l.step(election.PeerLost{Peer: e.Peer})
	case transport.Refused:
		l.warnings.refuse(e)
		l.publish(l.clock())
	}
}

// publish replaces what readers see.
func (l *loop) publish(now election.Instant) {
	l.unshown = false
	status := l.core.Status(now)
	if l.names == nil || l.roster != status.Roster {
		if l.roster != status.Roster {
			l.roster = status.Roster
			l.reach()
		}
		l.adopt(status.Roster)
		l.names = namesOf(l.self.Peer, l.name, l.view, status.Roster)
		l.warnings.adopted(l.self.Peer, l.name, status.Roster)
	}
	l.pages.Publish(now, status)
	l.picture.Store(&serve.Picture{
		Status: status, View: l.view, Names: l.names, Connected: l.connected, Expected: l.expected,
		Unhealthy: l.campaigns.Companions().Unable(election.Default),
		Warnings:  l.warnings.update(now, l.otherWarnings(now, status), l.writer.problem()),
	})
	if status.Draining != l.draining {
		l.drain(status.Draining)
	}
}

// What the loop needs of the other parts, so that a test can replace them.
type (
	// core decides. One goroutine owns it.
	core interface {
		Step(election.Instant, election.Input) election.Output
		Status(election.Instant) *elector.Status
		HandingOver() bool
	}
	// network carries messages to peers; none of its methods blocks.
	network interface {
		Send(election.PeerID, election.Message) bool
		SetPeers([]transport.Peer)
		Suspect(election.PeerID)
		Unsendable() string
		Ready() <-chan struct{}
		Next() (transport.Event, bool)
	}
	// gossip knows the members.
	gossip interface {
		Views() <-chan membership.View
		Update(func(*membership.Member)) error
	}
	// disk makes a state durable, and blocks while it does.
	disk interface {
		Write(election.State) error
	}
)
