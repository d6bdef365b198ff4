// Package agent is the daemon. It runs the pure elector against the network, the disk and the
// clock, and answers the programs of its host. It makes the parts, starts them and stops them;
// package loop owns the elector.
//
// Before a stop closes anything, the agent hands over what it leads. The package assumes a disk
// that keeps what was synced, and a clock that counts the time of a suspend (see package boottime).
package agent

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/loop"
	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/internal/base/logger"
	"github.com/doyen-election/doyen/internal/keeper"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// Version is the version of this build. A release sets it (make dist).
var Version = "0.6.0"

// ErrRestart is what Run returns after a request to restart. The caller then ends the process at once. If the
// agent did not have to hand over first, it still leads, and the next life goes on from the record.
var ErrRestart = errors.New("asked to restart")

// Run runs an agent until ctx is cancelled or the agent is asked to leave. Then it hands over
// what the agent leads, and returns nil. An error that only an operator can repair is a
// *settings.Error, and Run returns it before the agent has started. The log goes to stderr, and
// so does the line which reports that the agent is ready.
func Run(ctx context.Context, cfg settings.Config, around Process, stderr io.Writer) error {
	cfg, err := cfg.Resolve()
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	policy, err := cfg.Policy()
	if err != nil {
		return err
	}
	a := &agent{cfg: cfg, around: around, access: policy, files: openFiles(), leaving: make(chan struct{}), restarts: make(chan struct{})}
	a.level.configure(cfg.LogLevel)
	a.logger = logger.New(cfg.LogFormat, &a.level, io.MultiWriter(&a.lines, stderr))
	a.settings.Store(&cfg)
	if err := a.start(); err != nil {
		return errors.Join(err, a.close(false))
	}
	return a.run(ctx, stderr)
}

// Process is what the process around an agent offers to it. The zero value is for a program
// that embeds an agent: such an agent can't be reloaded or restarted.
type Process struct {
	// Life connects this life with its keeper; nil: no keeper started this life.
	Life *keeper.Life
	// Program is the file from which the next life is started; empty: a restart is refused.
	Program string
	// Trial runs the file Program with this agent's arguments and --check-config, and returns
	// what it prints; nil: nothing can run that file.
	Trial func(context.Context) ([]byte, error)
	// Reread returns the present configuration, resolved and valid; nil: a reload is refused.
	// Each element of Hangups asks for a reload.
	Reread  func() (settings.Config, error)
	Hangups <-chan os.Signal
}

// agent is everything one agent runs.
type agent struct {
	cfg       settings.Config // as it was at the start
	around    Process
	settings  atomic.Pointer[settings.Config] // as the last reload left them; the value is replaced, never changed
	reloads   sync.Mutex                      // held during a reload, so that there is one at a time
	stopTCP   func()                          // ends the TCP listener; nil: none is open. Guarded by reloads
	level     logLevel
	lines     logger.Ring // the newest lines of the log, for bug reports
	access    *access.Policy
	files     int // how many files the socket API may have open; 0: any number
	logger    *slog.Logger
	runID     election.RunID
	lineage   election.Lineage // its field Life is the number of this life
	leaving   chan struct{}    // closed once the agent is asked to leave
	leaveOnce sync.Once
	restarts  chan struct{} // closed once the agent is asked to restart
	restart   sync.Once
	handFirst string                          // why a restart hands over first; empty: it does not. Set before restarts closes
	roster    atomic.Pointer[election.Roster] // atomic, since gossip's goroutine reads it

	record   *record.Record // nil: this agent can't keep a record
	past     *record.Past   // nil: this process run is the first life
	noRecord string         // why no record is kept, on a system that could keep one
	suspends *boottime.Suspends

	store      *store.Store
	transport  *transport.Transport
	membership *membership.Membership
	keys       *settings.Keyring
	pages      *pages.Keeper
	metrics    *metrics
	loop       *loop.Loop
	writer     *loop.Writer
	server     *serve.Server
}

// start starts the parts. Gossip starts only once the sockets and the ports for peers and gossip are
// bound. The ports of the read-only listener and the agent-check are bound later.
func (a *agent) start() error {
	a.runID = newRun()
	s, state, err := store.Open(store.Config{Dir: a.cfg.DataDir, Name: a.cfg.Name, PeerID: transport.PeerIDOf})
	if errors.Is(err, store.ErrEnding) {
		return err // the configuration is right: a later start succeeds
	}
	if err != nil {
		return settings.StartError("data-dir", err)
	}
	a.store = s
	a.roster.Store(state.Roster)
	if state, err = a.resetGenesis(state); err != nil {
		return err
	}
	sockets, err := listenSockets(a.cfg)
	if err != nil {
		return err
	}
	a.suspends = boottime.NewSuspends() // before openRecord, so that a suspend after the record was checked is noticed
	a.openRecord()
	a.around.Life.Tells(a.known())
	a.pages = pages.Open(leasepage.Dir(a.cfg.Socket), a.lineage.ID, ledOn(a.past))
	hub := watch.NewHub(uint64(time.Now().UnixMilli()))
	if a.past != nil {
		hub.GoesOn() // enterRestart then publishes, as the first change, what this life goes on leading
	}
	a.metrics = newMetrics(a.cfg.Cluster)
	if err := a.connect(); err != nil {
		return errors.Join(err, sockets.Close())
	}
	if err := a.newCore(state, hub); err != nil {
		return errors.Join(err, sockets.Close())
	}
	if err := a.loop.History.Keep(filepath.Join(a.cfg.DataDir, "history"), func(err error) { a.logger.Warn(err.Error()) }); err != nil {
		a.logger.Warn(err.Error())
	}
	a.loop.History.Started(time.Now(), int64(boottime.Now()))
	a.server = a.newServer(hub)
	a.admit()
	if err := a.listenTCP(a.cfg.HTTP); err != nil {
		return errors.Join(err, sockets.Close())
	}
	if err := listen("agent-check", a.cfg.AgentCheck, a.server.AgentCheck); err != nil {
		return errors.Join(err, sockets.Close())
	}
	sockets.answer(a.server, a.cfg)
	return nil
}

// connect starts the transport and then membership, since gossip announces the port that the
// transport got.
func (a *agent) connect() (err error) {
	bind, _ := settings.ParseAddr(a.cfg.Bind) // can't fail: the configuration is validated
	advertise, _ := settings.ParseAddr(a.cfg.Advertise)
	a.transport, err = transport.New(transport.Config{
		Key:    a.store.Key(),
		Listen: netip.AddrPortFrom(bind, uint16(a.cfg.PeerPort)),
		Hello: transport.Hello{
			Lineage: a.lineage.ID, Run: a.runID, Name: a.cfg.Name, Cluster: a.cfg.Cluster, Version: Version,
			Algorithm: a.cfg.Algorithm, Quorum: a.cfg.Quorum, Heartbeat: a.cfg.Heartbeat, Lease: a.cfg.Lease,
		},
		Accept:  a.accept,
		Follows: func() bool { return a.roster.Load().Follows() },
		Logger:  a.logger.With("part", "transport"),
	})
	if err != nil {
		return settings.PortError("peer-port", a.cfg.Bind, a.cfg.PeerPort, err)
	}
	keys, err := settings.GossipKeys(a.cfg, a.logger)
	if err != nil {
		return err
	}
	var key []byte
	var otherKeys [][]byte
	if len(keys) > 0 {
		key, otherKeys = keys[0], keys[1:]
	}
	a.membership, err = membership.New(membership.Config{
		Cluster: a.cfg.Cluster, Key: key, OtherKeys: otherKeys, Signer: a.store.Key(),
		Bind: bind, Port: a.cfg.GossipPort, Advertise: advertise,
		Self:        a.self(netip.AddrPortFrom(advertise, a.transport.Addr().Port())),
		Join:        a.seeds(a.cfg.Join),
		DefaultPort: settings.DefaultGossipPort,
		Pace:        membership.Pace(a.cfg.Profile),
		PeerIDOf:    transport.PeerIDOf,
		Judge:       a.judge,
		Rightful:    a.rightful,
		Votes:       a.votes,
		Met:         a.transport.Met,
		Logger:      a.logger.With("part", "membership"),
	})
	if err != nil {
		return settings.PortError("gossip-port", a.cfg.Bind, a.cfg.GossipPort, err)
	}
	return nil
}

// rightful reports whether a member has the identity that the roster lists under its name. So a rebuilt host
// that took a voter's name can't lock out that voter.
func (a *agent) rightful(m membership.Member) bool {
	v, ok := a.roster.Load().Named(m.Name)
	return ok && v.Peer == m.Peer
}

// votes reports whether the roster lists the member; before the first roster, whether the configuration does.
func (a *agent) votes(m membership.Member) bool {
	r := a.roster.Load()
	return r.Has(m.Peer) || r == nil && slices.Contains(a.cfg.Voters, m.Name)
}

// self is what this agent gossips about itself.
func (a *agent) self(addr netip.AddrPort) membership.Member {
	return membership.Member{
		Member:   election.Member{Peer: a.store.Peer(), Lineage: a.lineage.ID, Run: a.runID, Name: a.cfg.Name, JoinedAt: a.lineage.JoinedAt},
		Version:  Version,
		PeerAddr: addr,
		PageAddr: pageAddr(a.cfg.HTTP, addr.Addr()),
		Settings: membership.Settings{Algorithm: a.cfg.Algorithm, Quorum: a.cfg.Quorum, Heartbeat: a.cfg.Heartbeat, Lease: a.cfg.Lease},
	}
}

// newCore makes the elector and the loop around it.
func (a *agent) newCore(state election.State, hub *watch.Hub) error {
	holder := election.Holder{Peer: a.store.Peer(), Lineage: a.lineage.ID}
	core, err := elector.New(election.Config{
		Self: holder, Run: a.runID, Life: a.lineage.Life, Name: a.cfg.Name, JoinedAt: a.lineage.JoinedAt,
		Quorum: a.cfg.Quorum, Algorithm: a.cfg.Algorithm,
		Timing:  election.Timing{Heartbeat: a.cfg.Heartbeat, Lease: a.cfg.Lease},
		Drift:   election.DefaultDrift,
		Preempt: a.cfg.Preempt, PreemptDelay: a.cfg.PreemptDelay,
		Voters: a.cfg.Voters, Alone: len(a.cfg.Voters) == 0 && len(a.cfg.Join) == 0,
	}, state, a.past.Of(), boottime.Now(), mathrand.New(mathrand.NewPCG(random(), random())))
	if err != nil {
		return fmt.Errorf("start elector: %w", err)
	}
	a.writer = loop.NewWriter(a.store, a.metrics.fsync.observe, a.logger)
	a.loop = loop.New(loop.Config{
		Adopt: a.adopt,
		Core:  core, Network: a.transport, Gossip: a.membership, Writer: a.writer, Past: a.past, Hub: hub, Pages: a.pages,
		Record: a.record, Words: named(state.Words), NoRecord: a.noRecord, Known: knownVoters(a.past),
		Actors: actors.New(actors.Config{
			Settings:       acting(a.cfg),
			MaxCandidacies: serve.Bound(actors.MaxCandidacies, a.files), MaxOfUser: a.access.MaxCandidacies(),
			Step: a.cfg.Step(false), StepOfMany: a.cfg.Step(true), NewID: rand.Text, Authority: map[bool]string{false: api.AuthorityView}[a.cfg.Quorum],
			Past: actors.Before(a.past, a.cfg.Quorum), Record: a.record.WriteProgram, RecordCompanion: a.record.WriteCompanion,
		}),
		Clock: boottime.Now, Suspended: a.suspends.Seen, Life: a.around.Life, Lease: a.cfg.Lease, Heartbeat: a.cfg.Heartbeat, Voters: a.cfg.Voters, Given: a.cfg.Shared(), Self: holder, Name: a.cfg.Name,
		Observe: a.metrics.step.observe, Logger: a.logger, Drained: a.store.DrainedSince, Expected: a.cfg.Expected(),
	})
	return nil
}

// named returns the words as a list, each with its election.
func named(words map[election.Name]election.Word) (all []election.NamedWord) {
	for name, w := range words {
		all = append(all, election.NamedWord{Election: name, Word: w})
	}
	return all
}

func (a *agent) newServer(hub *watch.Hub) *serve.Server {
	a.metrics.watch(a.cfg, a.loop, a.transport)
	a.keys = settings.NewKeyring(a.cfg.KeyFile, ring{a.membership, a.transport}, a.logger.With("part", "keys"))
	a.loop.Desk = forward.New(a.transport.Send, func(ctx context.Context, from election.PeerID, c election.Call) election.CallAnswer {
		return a.server.Forwarded(ctx, from, c)
	}, func(id election.PeerID) bool { return a.roster.Load().Has(id) })
	actUser, _ := a.cfg.ActUID() // can't fail: the configuration is validated
	return serve.New(serve.Config{
		Other: a.loop.Desk,
		Name:  a.cfg.Name, Version: Version, Cluster: a.cfg.Cluster, Algorithm: a.cfg.Algorithm,
		Self: a.loop.Self, Run: a.runID, Life: a.lineage.Life, Keeper: a.around.Life != nil, Lease: a.cfg.Lease, Picture: a.loop.Picture, Clock: boottime.Now, Hub: hub,
		Keyring: a.keys,
		History: a.loop.History.List, Enter: a.loop.History.Enter, Heartbeat: a.cfg.Heartbeat,
		Preemption: a.preemption, Campaigns: a.loop.Programs(),
		Metrics: a.metrics.handler(), Logger: a.logger.With("part", "api"), Commands: commands{a.loop, a},
		KeepDrain: a.store.SetDrained,
		Pings:     a.membership.Ping,
		LogLevel:  a.level.during, Debug: map[string]func() []byte{"log": a.lines.Text, "configuration": func() []byte { return a.settings.Load().WithoutSecrets() }},
		Access: a.access, ActUser: actUser, Files: a.files, Hosts: a.cfg.Hosts(), HTTPAPI: a.cfg.HTTPAPI,
	})
}

// newRun draws the run ID, which is never 0.
func newRun() election.RunID { return election.RunID(random() | 1) }

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}
