package exhaustive

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/testbed/messages"
)

// ChangeOptions choose which change of the voters to explore while a word is written and read.
type ChangeOptions struct {
	From, To string // the names of the voters, a letter each
	Before   string // c had the word while these were the voters, and lacks its deletion; empty: the word still counts
	Back     bool   // b and d have taken the new voters, and then the word, when a second driver goes back
	Writes   bool   // the word is written during the change; else voters have it on disk before
	Loses    bool   // answers of voters may be lost
	Early    bool   // b may ask for term 3 at any time, and not only once it has a stable roster of a driver
	States   int    // how many states to visit at most
}

// A changeWorld is one change of the voters that must carry a word (W9), or bring no deleted word back (W10). Agent
// a leads term 1, by the votes of a and c, and writes the first word; b asks for term 3 and reads. Driver a changes
// the voters in ballot 1, or goes back in ballot 2. The voters are the product's quorum.Voter with its catching up,
// the holders its quorum.Register, the driver its quorum.Driver. Each message to a voter, pages of words included, may arrive at any time, in any order,
// repeatedly, or never; the answer to it arrives at once or is lost. There is no clock, as in a wordWorld: promises
// have ended, and term 1 ends when b has read.
type changeWorld struct {
	o         ChangeOptions
	copier    *copier
	encoder   *world
	numbers   map[string]uint16
	voters    []changeVoter
	drivers   []*quorum.Driver
	registers []changeRegister
	sent      []sentMessage
	reactions map[[2]uint16]changeReaction
}

type changeVoter struct {
	disk   election.State
	behind reflect.Value // what the voter has read of others' words: a private field of quorum.Voter
}

type changeRegister struct {
	*quorum.Register
	roster *election.Roster
}

type sentMessage struct {
	from    election.PeerID
	message election.Message
}

// changeState is comparable. The numbers are indices; register 0 is none.
type changeState struct {
	voters    [4]uint16
	driver    uint16
	registers [2]uint16
	sent      [2]uint64
	acked     bool // the program of term 1 knows that its word is kept
}

type changeReaction struct {
	voter   uint16
	answers []election.Message
	pages   []uint16 // what the voter answers from now on to a request for its words
}

var (
	changeHolders = [2]election.Holder{{Peer: "a", Lineage: 1}, {Peer: "b", Lineage: 2}}
	changeTerms   = [2]election.Term{1, 3} // 2 is the second ballot, and may become the floor (R5)
)

func (w *changeWorld) send(s *changeState, from election.PeerID, m election.Message) {
	n := w.message(from, m)
	s.sent[n/64] |= 1 << (n % 64)
}

func (w *changeWorld) message(from election.PeerID, m election.Message) uint16 {
	return numbered(w.numbers, maxSent, fmt.Sprintf("%s %T %+v", from, m, m), &w.sent, sentMessage{from, m})
}

func (w *changeWorld) voter(v changeVoter) uint16 {
	at, floor := election.Version{}, election.Term(0)
	if v.disk.Roster != nil {
		at, floor = v.disk.Roster.Version, v.disk.Roster.Floor
	}
	return numbered(w.numbers, manyParts, fmt.Sprintf("voter %s %v %d %v %v %v %d %+v", v.disk.Peer, at, floor, v.disk.Former != nil, v.disk.Grants, v.disk.Words, v.disk.Forgotten, v.behind), &w.voters, v)
}

func (w *changeWorld) driver(d *quorum.Driver) uint16 {
	return numbered(w.numbers, manyParts, fmt.Sprint("driver ", d.Proposal().Version, w.encoder.append(nil, 0, reflect.ValueOf(d))), &w.drivers, d)
}

func (w *changeWorld) register(t int, r changeRegister) uint16 {
	return numbered(w.numbers, manyParts, fmt.Sprintf("register %d %v %+v", t, r.roster.Version, *r.Register), &w.registers, r)
}

func newChangeWorld(o ChangeOptions) (*changeWorld, changeState) {
	w := &changeWorld{o: o, copier: newCopier(), encoder: &world{}, numbers: map[string]uint16{}, registers: make([]changeRegister, 1),
		reactions: map[[2]uint16]changeReaction{}}
	first := &election.Roster{Cluster: "x", Version: election.Version{Counter: 2}, Voters: votersNamed(o.From)}
	d := quorum.NewDriver(1, drift, first, votersNamed(o.To))
	agree(d)                 // the search begins with the marked proposal, which may be the first that a voter gets
	led, has := first, "acd" // the roster of term 1, and the voters that have its word
	held := map[election.PeerID]*election.Roster{}
	for _, v := range first.Voters {
		held[v.Peer] = first
	}
	if o.Before != "" {
		led, has = &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: votersNamed(o.Before)}, "c"
		held["c"] = led
	}
	if o.Back {
		marked := d.Proposal()
		agree(d)
		led, has = d.Proposal(), "bd"
		held = map[election.PeerID]*election.Roster{"a": marked, "b": led, "c": marked, "d": led}
		d = quorum.InheritChange(2, drift, marked, marked)
		d.GoBack()
	}
	r := changeRegister{quorum.NewRegister(1, 0, led), led}
	for _, v := range led.Voters {
		r.Vote(v.Peer, led.Version, election.Word{})
	}
	r.Replace("x")
	written, s := r.Writing(), changeState{acked: !o.Writes}
	for i := range s.voters {
		d := election.State{Peer: peerOf(i), Roster: held[peerOf(i)], Grants: map[election.Name]election.Grant{}, Words: map[election.Name]election.Word{}}
		if led.Has(d.Peer) && strings.Contains(has, string(d.Peer)) {
			d.Grants[election.Default] = election.Grant{Term: 1, Holder: changeHolders[0], Lease: timing.Lease}
			if !o.Writes {
				d.Words[election.Default], d.KeepsWords = written, true
				r.Ack(d.Peer, election.WordAck{Rank: written.Rank, Version: led.Version})
			}
		}
		s.voters[i] = w.voter(changeVoter{d, reflect.Value{}})
	}
	w.holds(&s, 0, r)
	w.drives(&s, d)
	if o.Before != "" { // the driver has waited until c has the roster without it (W10)
		s.voters[2] = w.react(s.voters[2], w.message("a", election.Report{Roster: first})).voter
	}
	for i := 0; o.Back && i < 6; i++ { // the search begins when a, b and c have the mark, and have to catch up
		w.arrives(s, i%3, s.voters[i%3], w.message("a", proposal(w.drivers[s.driver])), func(n stepTo[changeState]) { s = n.next })
	}
	return w, s
}

// agree lets all voters accept the driver's proposal, and the driver go on.
func agree(d *quorum.Driver) {
	for _, v := range d.Proposal().All() {
		d.Accept(epoch, v.Peer, election.RosterAccept{Driver: d.Ballot, Version: d.Proposal().Version})
	}
	d.Advance(epoch.Add(time.Hour))
}

// holds stores what the holder of a term now knows, and sends what it still has to send.
func (w *changeWorld) holds(s *changeState, t int, r changeRegister) {
	s.registers[t] = w.register(t, r)
	switch word := r.Outstanding(); {
	case r.Reading():
		w.send(s, changeHolders[t].Peer, election.VoteRequest{Election: election.Default, Term: changeTerms[t], Holder: changeHolders[t],
			Lease: timing.Lease, Send: 1, Roster: *r.roster})
	case word != (election.Word{}):
		w.send(s, changeHolders[t].Peer, election.WordWrite{Election: election.Default, Holder: changeHolders[t], Version: r.roster.Version, Word: word})
	}
}

// drives lets the driver go on as far as it can, and sends its proposal.
func (w *changeWorld) drives(s *changeState, d *quorum.Driver) {
	for d.Advance(epoch.Add(time.Hour)) {
	}
	s.driver = w.driver(d)
	w.send(s, "a", proposal(d))
}

func proposal(d *quorum.Driver) election.RosterPropose {
	return election.RosterPropose{Driver: d.Ballot, Holder: changeHolders[0], Roster: *d.Proposal(), CatchUp: d.CatchesUp()}
}

// react lets a voter handle a message, once all its promises have ended, and writes what it has to write.
func (w *changeWorld) react(voter, message uint16) changeReaction {
	key := [2]uint16{voter, message}
	if r, known := w.reactions[key]; known {
		return r
	}
	old, m, now := w.voters[voter], w.sent[message], epoch.Add(time.Hour)
	ledger := quorum.NewLedger(old.disk, timing.Lease)
	cfg := election.Config{Self: election.Holder{Peer: old.disk.Peer}, Quorum: true, Timing: timing, Drift: drift}
	v := quorum.NewVoter(cfg, ledger, epoch)
	field := reflect.ValueOf(v).Elem().FieldByName("behind")
	behind := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem() // so that it can be set
	if old.behind.IsValid() {
		behind.Set(old.behind)
		clear(w.copier.copies)
		w.copier.unshare(behind)
	}
	handle(v, m.from, m.message, now, len(w.o.Before) > len(w.o.From)+1)
	after := changeVoter{disk: settled(v, ledger, now)}
	if !behind.IsNil() {
		after.behind = reflect.New(behind.Type()).Elem()
		after.behind.Set(behind)
	}
	r := changeReaction{voter: w.voter(after)}
	for _, a := range ledger.Take() {
		switch a.Message.(type) {
		case election.VoteGrant, election.WordAck, election.RosterAccept:
			r.answers = append(r.answers, a.Message)
		}
	}
	if at := after.disk.Roster; at != nil && at.Joint() && at.Committed {
		if page, ok := v.Page(election.WordsWanted{Version: at.Version}); ok {
			r.pages = append(r.pages, w.message(old.disk.Peer, page))
		}
	}
	w.reactions[key] = r
	return r
}

// each calls f with each state that may follow: none once b has read.
func (w *changeWorld) each(s changeState, f func(stepTo[changeState])) {
	if read := w.registers[s.registers[1]]; read.Register != nil && read.Ready() {
		return
	}
	for t, holder := range changeHolders {
		if t == 0 && !w.o.Writes {
			continue
		}
		r, at := w.registers[s.registers[t]], w.voters[s.voters[t]].disk.Roster
		next, what := s, func() string {
			return fmt.Sprintf("%s goes on with term %d at roster %v", holder.Peer, changeTerms[t], at.Version)
		}
		switch {
		case s.registers[t] == 0 && !w.o.Early && (at.Joint() || at.Version.Driver == 0):
			continue
		case s.registers[t] == 0:
			w.holds(&next, t, changeRegister{quorum.NewRegister(changeTerms[t], 0, at), at})
		case r.roster.Version != at.Version:
			r = changeRegister{copied(w.copier, r.Register), at}
			r.Reroster(at)
			w.holds(&next, t, r)
		default:
			continue
		}
		f(stepTo[changeState]{next: next, what: what})
	}
	for v, voter := range s.voters {
		for n := range uint16(len(w.sent)) {
			if s.sent[n/64]&(1<<(n%64)) != 0 {
				w.arrives(s, v, voter, n, f)
			}
		}
	}
}

func (w *changeWorld) arrives(s changeState, v int, voter, message uint16, f func(stepTo[changeState])) {
	r := w.react(voter, message)
	what := func() string {
		return fmt.Sprintf("%s receives %s", peerOf(v), messages.Describe(w.sent[message].message))
	}
	s.voters[v] = r.voter
	for _, n := range r.pages {
		s.sent[n/64] |= 1 << (n % 64)
	}
	if r.voter != voter && (w.o.Loses || len(r.answers) == 0) {
		f(stepTo[changeState]{next: s, what: what})
	}
	for _, a := range r.answers {
		next, bad, t := s, "", 0
		switch m := a.(type) {
		case election.RosterAccept:
			d := copied(w.copier, w.drivers[s.driver])
			d.Accept(epoch, peerOf(v), m)
			w.drives(&next, d)
		case election.VoteGrant:
			t = int(m.Term) / 2
		case election.WordAck:
			t = int(m.Rank.Term) / 2
		}
		if _, accepts := a.(election.RosterAccept); !accepts {
			bad = w.answered(&next, t, peerOf(v), a)
		}
		f(stepTo[changeState]{next, func() string { return what() + "; " + messages.Describe(a) }, bad})
	}
}

// answered counts a voter's answer to the holder of a term, and judges the word that b reads.
func (w *changeWorld) answered(s *changeState, t int, from election.PeerID, a election.Message) string {
	old := w.registers[s.registers[t]]
	r := changeRegister{copied(w.copier, old.Register), old.roster}
	switch m := a.(type) {
	case election.VoteGrant:
		r.Vote(from, m.Version, m.Word)
	case election.WordAck:
		r.Ack(from, m)
	}
	w.holds(s, t, r)
	known := r.Ready() && r.Writing() == (election.Word{})
	if s.acked = s.acked || t == 0 && known; t == 1 && known && s.acked && (r.Word().Text == "x") == (w.o.Before != "") {
		return fmt.Sprintf("b has %s; the first word was deleted: %t", messages.Word(r.Word()), w.o.Before != "")
	}
	return ""
}

// ExploreChange visits the states breadth first.
func ExploreChange(o ChangeOptions) Found {
	w, first := newChangeWorld(o)
	return breadthFirst(first, itself, o.States, w.each, right)
}
