package exhaustive

import (
	"maps"
	"reflect"
	"slices"
	"unsafe"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/failuredetector"
	"github.com/doyen-election/doyen/quorum"
)

// What does not matter to the future, and so must not tell states apart:
//
//   - Counters, configuration, random source (it is constant), roster and view
//     (they never change here but for the boots), the last output, and what each
//     step computes again before it reads it.
//   - Absolute instants: each is taken relative to the clock of the agent that
//     read it. A deadline that is past is past, however long; all other instants
//     (since when, sent when) count up to the slack, which is above everything
//     the protocol waits for.
//   - The numbers of sends: an answer is worth what the send time of its request
//     is worth, and whether that was before the first heartbeat of the term.
//   - The numbers of changes and writes of the ledger: only which of them are
//     durable, and in what order the others are.
//   - Observed intervals: the detectors run with a fixed deadline.

// special are the types with their own rule; nil: the type says nothing.
func special() map[reflect.Type]encode {
	return map[reflect.Type]encode{
		reflect.TypeFor[election.Instant]():         encodePast,
		reflect.TypeFor[election.View]():            encodeView,
		reflect.TypeFor[failuredetector.Detector](): encodeDetector,
		reflect.TypeFor[election.VoteRequest]():     encodeRequest,
		reflect.TypeFor[election.VoteGrant]():       encodeGrant,
		reflect.TypeFor[election.VoteRefusal]():     encodeRefusal,
		reflect.TypeFor[election.Heartbeat]():       encodeHeartbeat,
		reflect.TypeFor[election.HeartbeatAck]():    encodeAck,
		reflect.TypeFor[election.Rank]():            nil, // follows from the holder
		reflect.TypeFor[election.Roster]():          nil,
		reflect.TypeFor[*election.Roster]():         nil,
		reflect.TypeFor[elector.Config]():           nil,
		reflect.TypeFor[*contest.Config]():          nil,
		reflect.TypeFor[elector.Counters]():         nil,
		reflect.TypeFor[election.Output]():          nil,
		reflect.TypeFor[quorum.VoterConfig]():       nil,
		reflect.TypeFor[quorum.Sends]():             nil,
		reflect.TypeFor[quorum.Formation]():         nil,
	}
}

// fieldRules are the fields with their own rule; nil: the field says
// nothing.
func fieldRules() map[string]encode {
	rules := map[string]encode{
		"contest.tenure.firstBeat":     func(e *encoder, p unsafe.Pointer) { e.truth(*(*election.SendID)(p) != 0) },
		"elector.peer.stamp":           func(e *encoder, p unsafe.Pointer) { e.stamp(*(*election.Instant)(p), e.peer) },
		"elector.peer.unansweredSince": func(e *encoder, p unsafe.Pointer) { e.stamp(*(*election.Instant)(p), e.owner) },
		"quorum.Lease.sends":           encodeSendTimes,
		"quorum.unsent.generation":     encodeGeneration,
		"quorum.Voter.adopting":        encodeGeneration,
		"quorum.Voter.writing":         encodeWriting,
		"quorum.Ledger.generation":     encodeGeneration,
		"quorum.Ledger.urgent":         encodeGeneration,
		"quorum.Ledger.writing":        encodeGeneration,
		"election.Report.Stamp":        func(e *encoder, p unsafe.Pointer) { e.stamp(*(*election.Instant)(p), e.from) },
	}
	for _, f := range deadlines() {
		rules[f] = encodeDeadline
	}
	for _, f := range []string{
		"elector.Elector.rng", "elector.Elector.now", "elector.Elector.started", "elector.Elector.formation",
		"elector.Elector.change", "elector.Elector.sends", "elector.Elector.inquiries", "elector.Elector.inquired",
		"elector.Elector.own", "elector.entry.e", "elector.entry.wakeAt", "contest.Contest.rival", "contest.Known.Heard",
		"elector.peer.heardAt", "elector.peer.redialAt", // of connections, which nothing closes here
		"elector.Elector.progress", "elector.Elector.sentWrites", "elector.Elector.sendWritesAt",
		"election.State.Writes", "election.Report.Boot", "election.Report.Writes", "election.Report.Known", "quorum.Ledger.written",
		"quorum.Voter.ledger", "quorum.Voter.granted", "quorum.Voter.refused",
		"quorum.Ledger.durable", "quorum.Ledger.writes", "quorum.Ledger.retry", "quorum.Lease.drift",
	} {
		rules[f] = nil
	}
	return rules
}

// deadlines are the fields of which only the time to come counts.
func deadlines() []string {
	return []string{
		"elector.Elector.beatAt", "elector.peer.probeAt", "contest.Known.Until",
		"contest.rumour.heedUntil", "contest.rumour.promiseEnd", "contest.Contest.notBefore",
		"contest.Contest.standDownUntil", "contest.bid.deadline", "contest.bid.resendAt", "contest.departure.stopBy", "quorum.promise.until",
		"quorum.Lease.earned", "quorum.Ledger.retryAt", "bully.Bully.until", "bully.deferring.until",
		"ring.Ring.until", "ring.hop.until",
	}
}

// encodeDeadline encodes a deadline of the owner's clock.
func encodeDeadline(e *encoder, p unsafe.Pointer) {
	switch i := *(*election.Instant)(p); i {
	case election.Never:
		e.signed(-1)
	default:
		e.signed(int64(max(0, i-e.clock(e.owner))))
	}
}

// encodePast encodes since when something is so, on the owner's clock.
func encodePast(e *encoder, p unsafe.Pointer) { e.past(*(*election.Instant)(p), e.owner) }

func (e *encoder) past(i election.Instant, owner int) {
	if i == election.Never {
		e.signed(1)
		return
	}
	e.signed(int64(max(-e.slack, i-e.clock(owner))))
}

// stamp encodes an instant of that agent's clock that is echoed to it; 0: none.
func (e *encoder) stamp(i election.Instant, owner int) {
	e.truth(i != 0)
	if i != 0 {
		e.past(i, owner)
	}
}

func (e *encoder) clock(agent int) election.Instant { return e.world.agents[agent].clock }

func encodeGeneration(e *encoder, p unsafe.Pointer) {
	e.number(max(*(*uint64)(p), e.durable) - e.durable)
}

func encodeWriting(e *encoder, p unsafe.Pointer) {
	writing := *(*map[election.Name]uint64)(p)
	for _, name := range slices.Sorted(maps.Keys(writing)) {
		e.text(string(name))
		e.number(max(writing[name], e.durable) - e.durable)
	}
	e.number(0)
}

func encodeSendTimes(e *encoder, p unsafe.Pointer) {
	sends := *(*map[election.PeerID]election.Instant)(p)
	for _, id := range slices.Sorted(maps.Keys(sends)) {
		e.text(string(id))
		e.past(sends[id], e.owner)
	}
	e.number(0)
}

func encodeDetector(e *encoder, p unsafe.Pointer) {
	deadline := (*failuredetector.Detector)(p).Deadline()
	encodeDeadline(e, unsafe.Pointer(&deadline))
}

func encodeView(e *encoder, p unsafe.Pointer) {
	for _, m := range (*election.View)(p).Members {
		e.number(uint64(m.Boot))
	}
}

func (e *encoder) holder(h election.Holder) { e.number(uint64(h.Boot)) } // boots are of one agent each

// send encodes what an answer to that send of that boot would be worth.
func (e *encoder) send(boot election.BootID, id election.SendID) {
	a := &e.world.agents[agentOf(boot)]
	if !a.alive || a.boot != boot {
		e.number(0)
		return
	}
	at, known := sendsOf(a.elector).At(id)
	if !known {
		e.number(0)
		return
	}
	e.number(1)
	e.past(at, agentOf(boot))
	e.truth(id >= firstBeat(a.elector))
}

func encodeRequest(e *encoder, p unsafe.Pointer) {
	m := (*election.VoteRequest)(p)
	e.text(string(m.Election))
	e.number(uint64(m.Term))
	e.holder(m.Holder)
	e.send(m.Holder.Boot, m.Send)
}

func encodeGrant(e *encoder, p unsafe.Pointer) {
	m := (*election.VoteGrant)(p)
	e.text(string(m.Election))
	e.number(uint64(m.Term))
	e.holder(m.Holder)
	e.send(m.Holder.Boot, m.Send)
	e.stamp(m.Stamp, e.from)
}

func encodeRefusal(e *encoder, p unsafe.Pointer) {
	m := (*election.VoteRefusal)(p)
	e.text(string(m.Election))
	e.number(uint64(m.Term))
	e.holder(m.Holder)
	e.number(uint64(m.Granted))
	e.holder(m.GrantedTo)
	e.signed(int64(m.Remaining))
	e.number(uint64(m.Reason))
}

func encodeHeartbeat(e *encoder, p unsafe.Pointer) {
	m := (*election.Heartbeat)(p)
	e.number(uint64(m.Boot))
	e.send(m.Boot, m.Send)
	e.stamp(m.Echo, e.to)
	e.value(reflect.TypeFor[[]election.Claim](), unsafe.Pointer(&m.Claims))
}

func encodeAck(e *encoder, p unsafe.Pointer) {
	m := (*election.HeartbeatAck)(p)
	e.number(uint64(m.Boot))
	e.send(m.Boot, m.Send)
	e.stamp(m.Stamp, e.from)
	e.value(reflect.TypeFor[[]election.Nack](), unsafe.Pointer(&m.Nacks))
}
