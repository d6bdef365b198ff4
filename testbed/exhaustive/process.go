package exhaustive

import (
	"math/rand/v2"
	"reflect"

	"github.com/doyen-election/doyen/bully"
	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/ring"
)

// process is one process run of an agent: the product's own contest, selection and voter, and
// their environment. For one election under one roster, it does what package elector does.
type process struct {
	self      election.Holder
	now       election.Instant
	contest   *contest.Contest
	selection contest.Selection
	voter     *quorum.Voter
	ledger    *quorum.Ledger
	sends     *quorum.Sends
	roster    *election.Roster
	peers     [size]peer
	beatAt    election.Instant
	wakeAt    election.Instant // when the contest must be advanced

	former bool // a former life led: its leadership goes on with the first step

	own []election.Message // messages to itself, handled within the step
	out election.Output
}

// peer is what a process knows of another process.
type peer struct {
	boot      election.LineageID // of the connected process; 0: none is connected
	listed    election.LineageID // of the process that gossip lists
	reported  bool
	stamp     election.Instant // the newest stamp of the peer's clock, to be echoed; 0: none
	overdueAt election.Instant // when its heartbeats are overdue; Never: it leads nothing
	askedAt   election.Instant // when the oldest message was sent that it has not answered; Never: none
	probeAt   election.Instant // when to ask it for a Report if it is silent
}

// steady is a random source that always gives the same number. So the retries of an agent wait
// a fixed part of their jitter, a different part at each agent.
type steady uint64

func (s steady) Uint64() uint64 { return uint64(s) }

func newProcess(i int, self election.Holder, life uint64, s election.State, now election.Instant, byRing bool) *process {
	ledger := quorum.NewLedger(s, timing.Lease)
	cfg := &election.Config{Self: self, Life: life, JoinedAt: int64(self.Lineage), Quorum: true, Timing: timing, Drift: drift, Rand: rand.New(steady(uint64(1+6*i)<<60 | 0x123456789))}
	p := &process{self: self, now: now, ledger: ledger, sends: quorum.NewSends(timing.Lease, 0), roster: s.Roster, wakeAt: now}
	p.voter = quorum.NewVoter(*cfg, ledger, now)
	last := uint64(self.Lineage)<<32 | life<<16 // no two lives give a round the same number
	p.selection = bully.New(election.Default, self.Peer, timing.Heartbeat, last)
	if byRing {
		p.selection = ring.New(election.Default, self.Peer, timing.Heartbeat, last)
	}
	p.contest = contest.New(election.Default, cfg, &contest.Counts{}, p.selection, s.Grant(election.Default).Term, 0)
	for j := range p.peers {
		p.peers[j].lost()
	}
	return p
}

// goOn takes over what the former life left on record, as elector.New does.
func (p *process) goOn(life uint64, row election.Authority) {
	p.sends = quorum.NewSends(timing.Lease, election.SendID(life<<40))
	p.contest.Resume(row, quorum.ResumeLease(row.Term, timing.Lease, drift, p.roster, row.Until))
	if p.former = row.Term != 0; p.former {
		p.contest.Stand(true, row.Priority)
	}
}

// rounds is the number of the newest round that this process has begun.
func (p *process) rounds() uint64 {
	v := reflect.ValueOf(p.selection).Elem()
	if n := v.FieldByName("round"); n.IsValid() {
		return n.Uint()
	}
	return v.FieldByName("number").Uint()
}

// step handles one input, in the order of elector.Elector.Step.
func (p *process) step(now election.Instant, in election.Input) election.Output {
	p.now, p.out = now, election.Output{}
	if p.former {
		p.former = false
		p.carry(p.contest.Resumed(p))
	}
	if p.contest.Ends(now) {
		p.carry(p.contest.StepDown(p, election.ReasonLeaseExpired, ""))
	}
	p.handle(in)
	p.settle()
	p.voter.Tick(now)
	p.wakeAt = election.Never
	p.carry(p.contest.Advance(p))
	due := min(p.beat(), p.probe())
	p.settle()
	p.out.Persist = p.ledger.Next(now)
	p.out.WakeAt = max(now+1, min(due, p.wakeAt, p.voter.WakeAt(), p.ledger.WakeAt()))
	out := p.out
	p.out = election.Output{} // so that a copy of p does not contain it
	return out
}

func (p *process) handle(in election.Input) {
	switch in := in.(type) {
	case election.Received:
		p.receive(in.From, in.Message)
	case election.ViewChanged:
		for i, m := range in.View.Members {
			p.peers[i].listed = m.Lineage
		}
	case election.PeerConnected:
		o := p.peer(in.Peer)
		o.lost()
		o.boot, o.probeAt = in.Lineage, p.now.Add(timing.Heartbeat)
		p.send(in.Peer, p.report())
		p.carry(p.contest.Reconnected(p, in.Peer))
	case election.PeerLost:
		p.peer(in.Peer).lost()
		p.voter.Disconnected(in.Peer)
	case election.Persisted:
		p.ledger.Persisted(in.Write)
	case election.Campaign:
		p.contest.Stand(true, in.Priority)
	case election.Stopped:
		p.contest.Stopped(in.Term)
	case election.Resign:
		if p.contest.HasHeir(p) {
			p.carry(p.contest.StepDown(p, election.ReasonResigned, ""))
		}
	}
}

func (p *process) receive(from election.PeerID, m election.Message) {
	o := p.peer(from)
	if from != p.self.Peer {
		if o.boot == 0 {
			return
		}
		p.heard(from, m)
	}
	switch m := m.(type) {
	case election.VoteRequest:
		if from != p.self.Peer {
			if m.Holder.Lineage != o.boot {
				return // the run that asked has ended
			}
			p.carry(p.contest.HeedRound(p, m.Rank))
		}
		p.voter.Request(p.now, from, m)
	case election.VoteGrant:
		if m.Holder == p.self {
			sent, fresh := p.sends.At(m.Send)
			o.stamp = m.Stamp
			p.carry(p.contest.VoteGranted(p, from, m, sent, fresh))
		}
	case election.VoteRefusal:
		if m.Holder == p.self && p.contest.Learn(m.Granted) {
			p.carry(p.contest.VoteRefused(p, from, m))
		}
	case election.Release:
		p.voter.Release(p.now, from, m)
		if from != p.self.Peer {
			p.carry(p.contest.Released(p, m))
		}
	case election.Heartbeat:
		p.heartbeat(from, m)
	case election.HeartbeatAck:
		if m.Lineage == p.self.Lineage {
			o.stamp = m.Stamp
			p.renewed(from, m)
		}
	case election.Inquiry:
		p.send(from, p.report())
	case election.Report:
		o.reported, o.stamp = true, m.Stamp
		for _, r := range m.Records {
			p.carry(p.contest.Record(p, r))
		}
	default:
		p.carry(p.contest.Receive(p, from, m))
	}
}

// heard records that a message arrived. A peer that has stopped leading sends no heartbeats, and must not
// count as silent for that.
func (p *process) heard(from election.PeerID, m election.Message) {
	o := p.peer(from)
	o.askedAt = election.Never
	_, released := m.(election.Release)
	_, beats := m.(election.Heartbeat)
	if released || !beats && p.now >= o.overdueAt && p.contest.Leader().Holder.Peer != from {
		o.overdueAt = election.Never
	}
}

// heartbeat renews this voter's promises, and notes the leader. The claimed lease counts from the
// stamp that the heartbeat echoes: the heartbeat was sent later, so this is safe.
func (p *process) heartbeat(from election.PeerID, m election.Heartbeat) {
	o := p.peer(from)
	if m.Lineage != o.boot {
		return
	}
	o.overdueAt = p.now.Add(2 * timing.Heartbeat)
	p.send(from, election.HeartbeatAck{Lineage: m.Lineage, Send: m.Send, Stamp: p.now, Version: p.roster.Version, Nacks: p.voter.Renew(p.now, from, m)})
	for _, c := range m.Claims {
		until := m.Echo.Add(quorum.HolderLease(min(c.Remaining, timing.Lease), drift))
		p.carry(p.contest.Claimed(p, contest.Known{Holder: election.Holder{Peer: from, Lineage: m.Lineage}, Term: c.Term, Heard: p.now, Until: until}, m.Echo))
	}
}

// beat sends the heartbeat if it is due, and returns when the next one is due.
func (p *process) beat() election.Instant {
	if !p.contest.Claimable() {
		return election.Never
	}
	if p.now < p.beatAt {
		return p.beatAt
	}
	p.beatAt = p.now.Add(timing.Heartbeat)
	h := election.Heartbeat{Lineage: p.self.Lineage, Send: p.sends.Next(p.now), Version: p.roster.Version}
	h.Claims = []election.Claim{p.contest.Claim(p.now, h.Send)}
	for _, id := range p.Connected() {
		o := p.peer(id)
		h.Echo = o.stamp
		o.askedAt = min(o.askedAt, p.now)
		p.send(id, h)
	}
	nacks := p.voter.Renew(p.now, p.self.Peer, h)
	p.renewed(p.self.Peer, election.HeartbeatAck{Lineage: h.Lineage, Send: h.Send, Version: h.Version, Nacks: nacks})
	p.contest.Refresh(p.now)
	return p.beatAt
}

// renewed counts a voter's answer to a heartbeat.
func (p *process) renewed(voter election.PeerID, m election.HeartbeatAck) {
	sent, fresh := p.sends.At(m.Send)
	switch {
	case !fresh:
	case len(m.Nacks) == 0:
		p.contest.Renewed(voter, &m, sent)
	default:
		v := p.contest.Nacked(p, voter, m.Send, m.Nacks[0])
		p.carry(v)
	}
}

// probe asks silent peers for a Report, and returns when it must be called next.
func (p *process) probe() election.Instant {
	wake := election.Never
	for _, id := range p.Connected() {
		o := p.peer(id)
		if p.now >= max(o.probeAt, o.silentFrom()) {
			o.probeAt = p.now.Add(timing.Heartbeat)
			o.askedAt = min(o.askedAt, p.now)
			p.send(id, election.Inquiry{})
		}
		wake = min(wake, max(o.probeAt, o.silentFrom()))
	}
	return wake
}

// settle sends messages whose write is durable, and handles the messages of the process to itself.
func (p *process) settle() {
	for {
		p.voter.Settle(p.now)
		for _, m := range p.ledger.Take() {
			p.send(m.To, m.Message)
		}
		own := p.own
		if p.own = nil; len(own) == 0 {
			return
		}
		for _, m := range own {
			p.receive(p.self.Peer, m)
		}
	}
}

// carry carries out what the contest asks for.
func (p *process) carry(v contest.Verdict) {
	p.out.Withdraw = append(p.out.Withdraw, v.StepDown...)
	p.out.Announce = append(p.out.Announce, v.Announce...)
	for _, m := range v.Send {
		if r, asks := m.Message.(election.VoteRequest); asks {
			r.Send = p.sends.Next(p.now)
			m.Message = r
		}
		p.send(m.To, m.Message)
	}
	p.wakeAt = min(p.wakeAt, v.WakeAt)
	if v.Beat {
		p.beatAt = p.now
	}
}

func (p *process) send(to election.PeerID, m election.Message) {
	if to == p.self.Peer {
		p.own = append(p.own, m)
		return
	}
	p.out.Send = append(p.out.Send, election.Envelope{To: to, Message: m})
}

func (p *process) report() election.Report {
	return election.Report{Voter: true, Records: p.voter.Records(p.now), Stamp: p.now}
}

func (p *process) peer(id election.PeerID) *peer { return &p.peers[indexOf(id)] }

// lost forgets all about the peer, except what gossip lists.
func (o *peer) lost() {
	*o = peer{listed: o.listed, overdueAt: election.Never, askedAt: election.Never}
}

// silentFrom returns when the peer becomes silent if no message arrives from it.
func (o *peer) silentFrom() election.Instant { return min(o.overdueAt, o.askedAt.Add(timing.Lease)) }
