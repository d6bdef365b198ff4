package elector

import (
	"fmt"
	"math/rand/v2"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/roster"
)

// Elector is one agent's part in every election. Only one goroutine uses it.
type Elector struct {
	cfg        election.Config // the algorithm and timing in it follow the roster's settings
	given      election.Config // the configuration with which this agent started
	now        election.Instant
	started    election.Instant
	resumed    election.Instant // when the host last came back from a suspend; 0: it was not suspended
	ledger     *quorum.Ledger
	voter      *quorum.Voter
	formation  *quorum.Formation
	change     *roster.Change
	changeAt   election.Instant // when change is to be advanced
	sends      *quorum.Sends
	rounds     uint64           // each selection now in use numbers its rounds above FirstNumber plus this
	roster     *election.Roster // the one on disk; nil before genesis
	view       election.View
	peers      table[election.PeerID, *peer] // the connected agents of this cluster
	listening  listening
	foreign    table[election.PeerID, *peer] // the connected agents of other clusters
	noted      table[election.PeerID, *peer] // the peers with something about which to warn
	strangers  []Warning                     // of the voters whose names other agents have now
	contests   table[election.Name, *entry]
	stands     candidacies
	candidates candidates
	dues       dues
	apart      string // this agent's cluster when foreign peers were last moved out of the table peers
	heardOf    uint64 // counts the changes of members and of their candidacies
	facts      facts
	shownFacts uint64 // the generation of facts that readers were last shown
	advanced   uint64 // the generation of facts with which all elections were last advanced
	agenda     agenda
	shown      []*ContestStatus // what readers see; the slice is replaced, never changed; nil: it must be made again
	retired    election.Term    // the highest term known in any election whose contest was dropped
	spent      election.Term    // the highest term that this agent asked for in any such election
	settled    bool             // some election has had a known leader since the start
	metAt      election.Instant // when another agent's first Report arrived; 0: none has
	informedAt election.Instant // when enough voters had reported, if there are many members; 0: not yet
	sweepAt    election.Instant // when idle contests are next dropped
	inquiries  table[uint64, *inquiry]
	inquired   uint64
	disk       diskWatch
	progress   table[election.PeerID, progress] // how far the state of each agent has come by its last report; this agent is included
	reportAt   election.Instant                 // when this agent next reports its own progress to the others; Never: they know it
	barred     election.Barred                  // why this agent neither votes nor leads until its next start; zero: it may
	beatAt     election.Instant
	ledHere    int // how many elections the last heartbeat claimed
	lives      lives
	doubt      doubt
	withheld   map[election.PeerID]bool // voters that dispute a term which this agent leads
	draining   bool
	stopping   bool
	leaving    leaving
	counters   Counters
	counted    Counters // a copy of counters for readers, made at countedAt
	countedAt  election.Instant
	own        []election.Message // messages of this agent to itself, handled within the step
	out        election.Output
}

// New returns the elector of an agent that starts with a state that is on disk, and with what its former life left on
// record. past is nil if the agent starts a new lineage. rng is for random delays and for the names of clusters.
func New(cfg election.Config, s election.State, past *election.Past, now election.Instant, rng *rand.Rand) (*Elector, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if s.Peer != cfg.Self.Peer {
		return nil, fmt.Errorf("start elector: the state is %s's, not %s's", s.Peer, cfg.Self.Peer)
	}
	if past != nil {
		if past.ID != cfg.Self.Lineage || past.Life >= cfg.Life {
			return nil, fmt.Errorf("start elector: life %d of %s can't follow life %d of %s", cfg.Life, cfg.Self.Lineage, past.Life, past.ID)
		}
		cfg.JoinedAt = past.JoinedAt
	}
	if cfg.MaxElections == 0 {
		cfg.MaxElections = election.MaxElections // so that one heartbeat and one report can contain all
	}
	cfg.Run = runOf(cfg.Run, cfg.Self.Lineage)
	cfg.Rand = rng
	ledger := quorum.NewLedger(s, cfg.Lease)
	voter := quorum.NewVoter(cfg, ledger, now)
	formation := quorum.NewFormation(election.Voter{Name: cfg.Name, Peer: cfg.Self.Peer}, cfg.Voters, cfg.Heartbeat, ledger, voter)
	e := &Elector{cfg: cfg, given: cfg, now: now, started: now, ledger: ledger, voter: voter, formation: formation, roster: voter.Roster(),
		lives:     lives{lapsesAt: election.Never},
		reportAt:  election.Never,
		sends:     quorum.NewSends(cfg.Lease, election.SendID(cfg.FirstNumber())),
		withheld:  map[election.PeerID]bool{},
		agenda:    agenda{window: firstWindow},
		listening: listening{askAt: election.Never},
		sweepAt:   now.Add(cfg.Lease),
		inquired:  uint64(cfg.Run), // so that no answer to a former life's question counts
		stands:    candidacies{serial: cfg.FirstNumber()},
		counters: Counters{Sent: map[string]uint64{}, Received: map[string]uint64{},
			Dropped: map[string]uint64{}},
	}
	e.change = roster.New(&e.cfg, &e.given, ledger, voter, formation)
	e.change.Took(e.roster)
	e.followSettings()
	if past != nil {
		e.takeOver(past)
	}
	return e, nil
}

// Step handles one input. If `now` is before the instant of the last step, that instant counts. Output.Record is valid
// only until the next Step, which uses its rows again: a heartbeat may change a thousand of them.
func (e *Elector) Step(now election.Instant, in election.Input) election.Output {
	e.now = max(now, e.now)
	e.out = election.Output{}
	e.counters.Steps++
	e.resume()
	e.expireLeases() // first: a leader that was frozen must not act on the input
	e.handle(in)
	e.lapse()
	e.settle()
	duty := e.advance()
	e.settle()
	if e.stopping {
		e.ledger.Flush()
	}
	e.out.Record = e.record()
	e.out.Persist = e.ledger.Next(e.now)
	e.out.WakeAt = e.wakeAt(duty)
	return e.out
}

func (e *Elector) handle(in election.Input) {
	switch in := in.(type) {
	case election.Tick:
	case election.Received:
		e.receive(in.From, in.Message)
	case election.ViewChanged:
		e.viewed(in.View)
	case election.PeerConnected:
		e.connected(in)
	case election.PeerLost:
		e.disconnected(in.Peer)
	case election.Persisted:
		e.ledger.Persisted(in.Write)
	case election.PersistFailed:
		e.ledger.Failed(in.Write, e.now)
	case election.Campaign:
		if refusal := e.campaign(in); in.Request != 0 {
			e.reply(in.Request, refusal)
		}
	case election.Withdraw:
		e.withdrawCandidacy(in)
	case election.Overtake:
		if c := e.held(in.Election); c != nil {
			c.Overtake()
		}
	case election.Stopped:
		if c := e.held(in.Election); c != nil {
			c.Stopped(in.Term)
		}
	case election.Resign:
		e.reply(in.Request, e.resign(in))
	case election.Transfer:
		e.reply(in.Request, e.transfer(in))
	case election.WriteWord:
		e.writeWord(in)
	case election.ReadWord:
		if c := e.held(in.Election); c != nil {
			c.ReadWord(in.Request)
		} else {
			e.reply(in.Request, &election.Refusal{Why: election.DeniedNotLeader, Election: in.Election})
		}
	case election.ReadWords:
		e.out.Replies = append(e.out.Replies, election.Reply{Request: in.Request, Words: e.voter.Words(in.Election)})
	case election.Drain:
		e.drain(in)
	case election.Configure:
		e.cfg.Preempt, e.cfg.PreemptDelay = in.Preempt, in.PreemptDelay
		e.touchAll()
	case election.Shutdown:
		e.stopping = true
		e.leaving.begin(e, election.ReasonShutdown, min(e.cfg.Lease/2, maxShutdownTurns))
	case election.Inquire:
		e.inquire(in)
	case election.Barred:
		e.bar(in)
	case election.Late:
		e.late(in.By)
	case election.Suspended:
		e.suspended()
	case election.ChangeRoster:
		e.carryChange(e.change.Command(rosterFacts{e}, in))
	}
}

// receive handles a message from a peer, or from this agent to itself.
func (e *Elector) receive(from election.PeerID, m election.Message) {
	if from != e.cfg.Self.Peer && !e.heeds(from, m) {
		return
	}
	if why := e.ignores(m); why != "" {
		e.counters.Dropped[why]++
		return
	}
	switch m := m.(type) {
	case election.VoteRequest:
		e.voteRequest(from, m)
	case election.VoteGrant:
		e.voteGrant(from, m)
	case election.VoteRefusal:
		e.voteRefusal(from, m)
	case election.Release:
		e.released(from, m)
	case election.WordWrite:
		e.voter.Keep(e.now, from, m)
	case election.WordsWanted:
		if page, ok := e.voter.Page(m); ok {
			e.send(from, page)
		}
	case election.Words:
		e.sendAll(e.voter.Read(from, m))
	case election.WordAck:
		if c := e.held(m.Election); c != nil && !e.older(from) {
			e.carry(c, c.WordKept(c, from, m))
		}
	case election.Heartbeat:
		e.heartbeat(from, m)
	case election.HeartbeatAck:
		e.heartbeatAck(from, m)
	case election.Inquiry:
		if m.Durable {
			e.reportOnceWritten(from, m.ID)
			return
		}
		e.send(from, e.report(m.ID, m.Election))
	case election.Report:
		e.reported(from, m)
	case election.Listen:
		e.listening.answer(e, from, m)
	case election.News:
		e.listening.hear(e, from, m)
	case election.Candidacies:
		e.candidaciesOf(from, m)
	case election.CandidaciesAck:
		e.candidaciesAck(from, m)
	case election.GenesisPropose:
		e.formation.Propose(e.now, from, m)
	case election.GenesisAccept:
		e.formation.Accept(from, m)
	case election.GenesisRefuse:
		e.formation.Refuse(from, e.nameOf(from), m)
	case election.RosterPropose:
		e.carryChange(e.change.Propose(rosterFacts{e}, from, m))
	case election.RosterAccept:
		e.carryChange(e.change.Accepted(rosterFacts{e}, from, m))
	case election.RosterRefuse:
		e.rosterRefuse(from, m)
	case election.RosterCancel:
		e.change.Cancelled(from, m)
	case election.Selection:
		e.selectionMessage(from, m)
	}
}

// heeds counts a message of another agent, records that it arrived, and reports whether to handle it.
func (e *Elector) heeds(from election.PeerID, m election.Message) bool {
	e.counters.Received[election.Kind(m)]++
	if foreign := e.foreign.get(from); foreign != nil {
		e.heardForeign(from, foreign, m)
	} else if e.peers.get(from) == nil {
		e.counters.Dropped["not_connected"]++
	}
	p := e.peers.get(from)
	if p == nil {
		return false
	}
	e.heardFrom(from, m)
	if !e.change.Speaks(&p.Peer) {
		e.counters.Dropped["older_version"]++
	}
	return e.change.Speaks(&p.Peer)
}

// ignores is why a message about votes or the roster is not handled; empty: it is handled. A
// barred agent does handle a Vote Request: its voter refuses the request.
func (e *Elector) ignores(m election.Message) string {
	switch m.(type) {
	case election.GenesisPropose, election.GenesisAccept, election.RosterPropose, election.RosterAccept:
		if e.barred.Code != "" {
			return "barred"
		}
	case election.VoteRequest, election.VoteGrant, election.VoteRefusal, election.GenesisRefuse, election.RosterRefuse, election.RosterCancel, election.WordWrite, election.WordAck, election.WordsWanted, election.Words:
	default:
		return ""
	}
	if !e.cfg.Quorum {
		return "without_quorum"
	}
	return ""
}

// maxOwnTurns bounds how many times an agent handles its messages to itself in one step. A few are needed.
const maxOwnTurns = 64

// settle sends the messages whose writes are durable, and handles this agent's messages to itself.
func (e *Elector) settle() {
	e.setForeignApart()
	for range maxOwnTurns {
		e.voter.Settle(e.now)
		e.sendAll(e.ledger.Take())
		e.activateRoster()
		if len(e.own) == 0 {
			return
		}
		own := e.own
		e.own = nil
		for _, m := range own {
			e.receive(e.cfg.Self.Peer, m)
		}
	}
	e.own = nil
	e.counters.Dropped["own_loop"]++
}

func (e *Elector) advance() election.Instant {
	e.voter.Tick(e.now)
	formed := e.form()
	e.advanceChange()
	e.advanceContests()
	e.sweep()
	e.sendProgress()
	e.sendCandidacies()
	return min(formed, e.expireInquiries(), e.watchDisk(), e.catchUp(), e.listening.ask(e), e.beat(), e.dues.attend(e.lookAt), e.doubtEnds())
}

func (e *Elector) wakeAt(duty election.Instant) election.Instant {
	wake := min(duty, e.voter.WakeAt(), e.ledger.WakeAt(), e.changeAt, e.contestsWake(), e.lives.lapsesAt)
	if !e.diskStuck() {
		wake = min(wake, e.diskStuckFrom()) // from then on this agent can't be elected
	}
	return max(wake, e.now+1) // time must move before anything more can be due
}

// form does this agent's part in making the first roster. It returns when it must be called again.
func (e *Elector) form() election.Instant {
	if !e.cfg.Quorum || e.roster != nil || e.ledger.State().Roster != nil || e.barred.Code != "" {
		return election.Never
	}
	newCluster := func() string { return fmt.Sprintf("%016x", e.cfg.Rand.Uint64()) }
	if e.cfg.Alone && len(e.cfg.Voters) == 0 {
		e.formation.Alone(e.now, newCluster())
		return election.Never
	}
	e.formation.Advance(e.now, func(name string) (election.PeerID, bool) {
		m, ok := e.view.Named(name)
		return m.Peer, ok && e.peers.has(m.Peer)
	}, newCluster)
	if !e.formation.Proposer() {
		return election.Never
	}
	return e.now.Add(e.cfg.Heartbeat)
}

func (e *Elector) activateRoster() {
	r := e.voter.Roster()
	if r == e.roster {
		return
	}
	first := e.roster == nil
	e.roster = r
	e.change.Took(r)
	e.heardOf++ // the roster may allow other agents to lead
	e.followSettings()
	e.touchAll()
	e.dues.stir(e.peers.rows...)
	e.strangers = strangers(e.view, e.roster)
	for _, c := range e.contests.rows {
		e.carry(c, c.Reroster(c))
	}
	if first {
		for i, p := range e.foreign.rows {
			e.meetFormer(e.foreign.keys[i], p) // this peer may have reported its roster earlier
		}
		own := e.report(0, "") // this report shows agents of other clusters that this agent is not in theirs
		e.sendAllConnected(own)
		for _, id := range e.foreign.keys {
			e.send(id, own)
		}
	}
}

func (e *Elector) reply(id election.RequestID, refusal *election.Refusal) {
	e.out.Replies = append(e.out.Replies, election.Reply{Request: id, Refusal: refusal})
}
