package loop

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// rig is a loop whose other parts are fakes. All fakes write what happens into one journal.
type rig struct {
	mu         sync.Mutex
	journal    []string
	inputs     []election.Input
	peers      []transport.Peer // the peers that the transport was given last
	answer     func(election.Input) election.Output
	status     elector.Status
	handing    bool
	votersOnly bool  // as last given to the transport
	full       error // the result of a write to the disk

	events []transport.Event
	ready  chan struct{}
	views  chan membership.View
	slept  atomic.Int32 // suspends yet to be noticed
	log    bytes.Buffer
	loop   *Loop
	cancel context.CancelFunc
}

func (r *rig) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = append(r.journal, s)
}

func (r *rig) happened() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.journal, " ")
}

// rig's methods as the core.
func (r *rig) Step(_ election.Instant, in election.Input) election.Output {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inputs = append(r.inputs, in)
	return r.answer(in)
}

func (r *rig) Status(election.Instant) *elector.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	return &s
}

func (r *rig) HandingOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handing
}

// rig's methods as the other parts.
func (r *rig) Send(to election.PeerID, _ election.Message) bool {
	r.note("send:" + string(to))
	return true
}
func (r *rig) SetPeers(p []transport.Peer) {
	for _, p := range p {
		r.note("peer:" + string(p.ID))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers = p
}

// isPeer reports whether the transport was asked to connect to the peer.
func (r *rig) isPeer(id election.PeerID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.peers, func(p transport.Peer) bool { return p.ID == id })
}

// first lists the peers to connect first, and later those that can wait.
func (r *rig) first() string { return r.those(func(p transport.Peer) bool { return p.First }) }
func (r *rig) later() string { return r.those(func(p transport.Peer) bool { return p.Later }) }

func (r *rig) those(are func(transport.Peer) bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, p := range r.peers {
		if are(p) {
			all = append(all, string(p.ID))
		}
	}
	return strings.Join(all, " ")
}
func (r *rig) Unsendable() string        { return "" }
func (r *rig) Suspect(p election.PeerID) { r.note("suspect:" + string(p)) }
func (r *rig) VotersOnly(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.votersOnly = on
}
func (r *rig) Dismiss(all ...election.PeerID) {
	for _, p := range all {
		r.note("dismiss:" + string(p))
	}
}
func (r *rig) Ready() <-chan struct{} { return r.ready }
func (r *rig) Next() (transport.Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return nil, false
	}
	e := r.events[0]
	r.events = r.events[1:]
	return e, true
}

// hear passes events to the loop, one after the other.
func (r *rig) hear(events ...transport.Event) {
	r.mu.Lock()
	r.events = append(r.events, events...)
	r.mu.Unlock()
	r.ready <- struct{}{}
}
func (r *rig) Views() <-chan membership.View { return r.views }

// Introduced accepts the proof "good", and takes the advertisement for the name.
func (r *rig) Introduced(from election.PeerID, advert, proof []byte, gossip netip.AddrPort) (membership.Member, error) {
	if string(proof) != "good" {
		return membership.Member{}, errors.New("no proof")
	}
	m := memberOf(string(from), membership.Alive)
	m.Name, m.GossipAddr = string(advert), gossip
	return m, nil
}
func (r *rig) Write(election.Persist) error { r.note("write"); return r.full }
func (r *rig) Update(f func(*membership.Member)) error {
	var m membership.Member
	f(&m)
	if m.Draining {
		r.note("drained")
	}
	return nil
}

const (
	me    = election.PeerID("a")
	lease = time.Second
)

// newRig makes a loop that does not run yet. Without answer, the core's outputs are empty.
func newRig(t *testing.T, answer func(election.Input) election.Output) *rig {
	t.Helper()
	r := &rig{ready: make(chan struct{}), views: make(chan membership.View), answer: answer}
	if answer == nil {
		r.answer = func(election.Input) election.Output { return election.Output{WakeAt: election.Never} }
	}
	logger := slog.New(slog.NewTextHandler(&r.log, nil))
	none := func(time.Duration) {}
	w := NewWriter(r, none, logger)
	born := time.Now()
	r.loop = New(Config{
		Adopt:   func(*election.Roster) {},
		Drained: func() time.Time { return time.Time{} },
		Core:    r, Network: r, Gossip: r, Writer: w, Hub: watch.NewHub(1), Pages: &pages.Keeper{}, Lease: lease, Heartbeat: lease / 6,
		Clock:     func() election.Instant { return election.Instant(time.Since(born)) },
		Suspended: func() bool { return r.slept.Load() > 0 && r.slept.Add(-1) >= 0 },
		Self:      election.Holder{Peer: me, Lineage: 1}, Name: "a", Observe: none, Logger: logger,
		Actors: actors.New(actors.Config{Settings: actors.Settings{Priority: 100}, NewID: rand.Text, Step: lease / 10}),
	})
	return r
}

// start runs the loop.
func (r *rig) start(t *testing.T) *rig {
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go r.loop.Writer.Run(ctx)
	go r.loop.Run(ctx)
	return r
}

// once returns out for the first input of a kind, and empty outputs for all others.
func once[I election.Input](out election.Output) func(election.Input) election.Output {
	done := false
	return func(in election.Input) election.Output {
		if _, ok := in.(I); ok && !done {
			done = true
			return out
		}
		return election.Output{WakeAt: election.Never}
	}
}

func (r *rig) got(want election.Input) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.inputs {
		if reflect.DeepEqual(in, want) {
			return true
		}
	}
	return false
}
