package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func rankOf(term election.Term, seq uint64) election.WordRank {
	return election.WordRank{Term: term, Seq: seq}
}

func wordOf(term election.Term, seq uint64, text string) election.Word {
	return election.Word{Rank: rankOf(term, seq), ID: rankOf(term, seq), Text: text}
}

// keep asks the voter to keep a word. It returns what the voter sends at once, and what it sends after a write.
func (d *desk) keep(now election.Instant, h election.Holder, w election.Word, edit ...func(*election.WordWrite)) (atOnce, durable []election.Envelope) {
	m := election.WordWrite{Election: "e", Holder: h, Version: d.voter.Roster().Version, Word: w}
	for _, e := range edit {
		e(&m)
	}
	d.voter.Keep(now, h.Peer, m)
	return d.ledger.Take(), d.write(now)
}

func acked(out []election.Envelope, r election.WordRank) bool {
	if len(out) != 1 {
		return false
	}
	m, is := out[0].Message.(election.WordAck)
	return is && m.Rank == r && m.Version == roster3.Version && m.Election == "e"
}

func TestW1AVoterKeepsOnlyTheWordOfTheHolderThatHasItsGrant(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(*desk)
		holder election.Holder
		word   election.Word
		edit   func(*election.WordWrite)
		kept   bool
	}{
		{name: "of its grant", holder: holderA, word: wordOf(5, 1, "x"), kept: true},
		{name: "of a lower term", holder: holderA, word: wordOf(4, 9, "x")},
		{name: "of a higher term", holder: holderA, word: wordOf(6, 1, "x")},
		{name: "of another holder", holder: holderB, word: wordOf(5, 1, "x")},
		{name: "at another version", holder: holderA, word: wordOf(5, 1, "x"),
			edit: func(m *election.WordWrite) { m.Version.Counter++ }},
		{name: "of a released term", holder: holderA, word: wordOf(5, 1, "x"), before: func(d *desk) {
			d.voter.Release(at(1), "a", election.Release{Election: "e", Term: 5, Holder: holderA})
		}, kept: true},
		{name: "of a released term, after another vote", holder: holderA, word: wordOf(5, 1, "x"), before: func(d *desk) {
			d.voter.Release(at(1), "a", election.Release{Election: "e", Term: 5, Holder: holderA})
			d.grant(at(1), holderB, 6)
		}},
		{name: "older than its own", holder: holderA, word: wordOf(5, 1, "x"), before: func(d *desk) {
			d.keep(at(1), holderA, wordOf(5, 2, "newer"))
		}},
		{name: "newer than its own", holder: holderA, word: wordOf(5, 3, "x"), before: func(d *desk) {
			d.keep(at(1), holderA, wordOf(5, 2, "older"))
		}, kept: true},
		{name: "after it was barred", holder: holderA, word: wordOf(5, 1, "x"), before: func(d *desk) { d.voter.Bar(at(1)) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t, state())
			d.grant(at(0), holderA, 5)
			if row.before != nil {
				row.before(d)
			}
			if row.edit == nil {
				row.edit = func(*election.WordWrite) {}
			}
			atOnce, durable := d.keep(at(2), row.holder, row.word, row.edit)
			if len(atOnce) != 0 || row.kept != acked(durable, row.word.Rank) || !row.kept && len(durable) != 0 {
				t.Errorf("sent %+v at once, %+v after the write; to be kept: %t", atOnce, durable, row.kept)
			}
			if got := d.disk.Words["e"]; row.kept != (got == row.word) {
				t.Errorf("on disk is %+v, to be kept: %t", got, row.kept)
			}
		})
	}
}

func TestW1TheFloorEndsTheWordsOfATerm(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	next := *roster3
	next.Version, next.Floor = election.Version{Driver: 1, Counter: 1}, 5
	d.voter.Adopt(at(1), &next, false)
	d.write(at(1))
	if atOnce, durable := d.keep(at(2), holderA, wordOf(5, 1, "x")); len(atOnce)+len(durable) != 0 {
		t.Errorf("a term at the floor may still write: %+v %+v", atOnce, durable)
	}
}

func TestW1AWordThatIsOnDiskIsAcknowledgedAgainWithoutAWrite(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.keep(at(1), holderA, wordOf(5, 1, "x"))
	if atOnce, _ := d.keep(at(2), holderA, wordOf(5, 1, "x")); !acked(atOnce, rankOf(5, 1)) {
		t.Errorf("sent %+v, want the same acknowledgement", atOnce)
	}
	if !d.ledger.Settled() {
		t.Error("it is written again")
	}
}

func TestW2NothingIsAcknowledgedBeforeItIsOnDisk(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.voter.Keep(at(1), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: wordOf(5, 1, "x")})
	d.ledger.Failed(d.ledger.Next(at(1)).Write, at(1))
	d.voter.Settle(at(1))
	if out := d.ledger.Take(); len(out) != 0 {
		t.Errorf("a write that failed is answered: %+v", out)
	}
	if out := d.write(at(1001)); !acked(out, rankOf(5, 1)) || d.disk.Words["e"] != wordOf(5, 1, "x") {
		t.Errorf("repeated, it sends %+v and has %+v on disk", out, d.disk.Words)
	}
}

func TestW2AVoteWaitsForTheWordAndTheWordForAVote(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.voter.Keep(at(1), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: wordOf(5, 1, "x")})
	d.ask(at(1), holderA, 6, 2, 0)
	if g := d.ledger.State().Grant("e"); g.Term != 5 {
		t.Fatalf("term %d is granted while the word of term 5 is written", g.Term)
	}
	if out := d.write(at(2)); !acked(out, rankOf(5, 1)) {
		t.Fatalf("sent %+v", out)
	}
	// Now the vote is being written. The word waits.
	d.voter.Keep(at(3), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: wordOf(6, 1, "y")})
	if w := d.ledger.Word("e"); w != wordOf(5, 1, "x") {
		t.Fatalf("it has %+v in mind while the vote is written", w)
	}
	if g := onlyGrant(t, d.write(at(4))); g.Term != 6 || g.Word != wordOf(5, 1, "x") {
		t.Fatalf("granted %+v, want term 6 with the word of term 5", g)
	}
	if out := d.write(at(5)); !acked(out, rankOf(6, 1)) {
		t.Errorf("sent %+v after the vote", out)
	}
}

func TestW2RenewalsAndReleasesDoNotWaitForAWord(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.voter.Keep(at(1), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: wordOf(5, 1, "x")})
	if nacks := d.voter.Renew(at(500), "a", renewal(holderA, 5)); len(nacks) != 0 {
		t.Errorf("not renewed: %+v", nacks)
	}
	d.voter.Release(at(501), "a", election.Release{Election: "e", Term: 5, Holder: holderA})
	if !d.ledger.State().Grant("e").Released {
		t.Error("the release waits")
	}
}

func TestW2ARosterWaitsForTheWord(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.voter.Keep(at(1), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: wordOf(5, 1, "x")})
	next := *roster3
	next.Version = election.Version{Driver: 1, Counter: 1}
	d.voter.Adopt(at(2), &next, false)
	if d.ledger.State().Roster.Version != roster3.Version {
		t.Error("it adopts a roster while a word is written at the former one")
	}
	if out := d.write(at(3)); !acked(out, rankOf(5, 1)) {
		t.Errorf("sent %+v", out)
	}
}

func TestW3EachVoteCarriesTheWordThatIsOnDisk(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.keep(at(1), holderA, wordOf(5, 1, "x"))
	d.start(at(2)) // from the disk
	d.ask(at(2), holderA, 5, 7, 0)
	if g := onlyGrant(t, d.write(at(2))); g.Word != wordOf(5, 1, "x") { // repeated (V2)
		t.Errorf("a repeated vote carries %+v", g.Word)
	}
	d.ask(at(3), holderA, 6, 8, 0)
	if g := onlyGrant(t, d.write(at(3))); g.Word != wordOf(5, 1, "x") {
		t.Errorf("a vote carries %+v", g.Word)
	}
}

func TestAWordAloneDoesNotWriteTheState(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	write := func(seq uint64) *election.Persist {
		d.voter.Keep(at(1), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: wordOf(5, seq, "x")})
		p := d.ledger.Next(at(1))
		d.ledger.Persisted(p.Write)
		d.voter.Settle(at(1))
		return p
	}
	if p := write(1); p.State == nil || !p.State.KeepsWords || len(p.Words) != 1 {
		t.Errorf("the first word: %+v; the state must say from now on that there are words", p)
	}
	before := d.ledger.Writes()
	if p := write(2); p.State != nil || len(p.Words) != 1 || p.Words[0].Word != wordOf(5, 2, "x") {
		t.Errorf("the second word: %+v; want it alone", p)
	} else if p.Writes != before+1 || d.ledger.Writes() != p.Writes {
		t.Errorf("it is write %d of this agent, and %d are reported; want %d", p.Writes, d.ledger.Writes(), before+1)
	}
	d.voter.Release(at(2), "a", election.Release{Election: "e", Term: 5, Holder: holderA})
	d.ledger.Flush()
	if p := d.ledger.Next(at(2)); p.State == nil || len(p.Words) != 0 {
		t.Errorf("a release: %+v; want the state alone", p)
	}
}

func TestAnElectionWithAWordIsNotForgotten(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.keep(at(1), holderA, wordOf(5, 1, "x"))
	if n := d.voter.Forget(at(100_000), func(election.Name) bool { return false }, 1); n != 0 {
		t.Error("forgotten")
	}
}

func vote(r *Register, from election.PeerID, w election.Word) { r.Vote(from, roster3.Version, w) }

func wordAck(r *Register, from election.PeerID, rank election.WordRank) {
	r.Ack(from, election.WordAck{Election: "e", Rank: rank, Version: roster3.Version})
}

func TestW4TheNewestWordOfAMajorityIsWrittenAgainBeforeItCounts(t *testing.T) {
	r := NewRegister(7, 100, roster3)
	vote(r, "a", wordOf(5, 2, "new"))
	if !r.Reading() || r.Ready() {
		t.Fatal("one vote is enough")
	}
	vote(r, "b", wordOf(4, 9, "old"))
	again := election.Word{Rank: rankOf(7, 101), ID: rankOf(5, 2), Text: "new"}
	if r.Reading() || r.Ready() || r.Outstanding() != again {
		t.Fatalf("it writes %+v, ready: %t; want %+v", r.Outstanding(), r.Ready(), again)
	}
	vote(r, "v", wordOf(6, 1, "late")) // never acknowledged, or a majority would have had it
	wordAck(r, "a", rankOf(5, 2))
	wordAck(r, "a", again.Rank)
	wordAck(r, "a", again.Rank)
	if r.Ready() {
		t.Fatal("ready by one voter's acknowledgement")
	}
	wordAck(r, "v", again.Rank)
	if !r.Ready() || r.Word() != again {
		t.Fatalf("it has %+v, ready: %t", r.Word(), r.Ready())
	}
	if r.Has("b") || r.Outstanding() != again {
		t.Error("b does not have it yet")
	}
}

func TestW4WithoutAWordNothingIsWritten(t *testing.T) {
	r := NewRegister(7, 100, roster3)
	vote(r, "a", election.Word{})
	vote(r, "b", election.Word{})
	if none := (election.Word{}); !r.Ready() || r.Word() != none || r.Outstanding() != none {
		t.Errorf("ready: %t, word %+v, to be written %+v", r.Ready(), r.Word(), r.Outstanding())
	}
}

func TestW5OnlyAnswersAtTheRostersVersionCount(t *testing.T) {
	r := NewRegister(7, 100, roster3)
	next := *roster3
	next.Version = election.Version{Driver: 1, Counter: 1}
	vote(r, "a", election.Word{})
	r.Reroster(&next)
	vote(r, "b", election.Word{})
	if r.Ready() {
		t.Fatal("votes of two versions are counted together")
	}
	r.Vote("a", next.Version, election.Word{})
	r.Vote("b", next.Version, election.Word{})
	rank := r.Replace("x")
	r.Ack("a", election.WordAck{Rank: rank, Version: next.Version})
	wordAck(r, "b", rank)
	if r.Word() != (election.Word{}) {
		t.Error("an acknowledgement at another version counts")
	}
	r.Ack("stranger", election.WordAck{Rank: rank, Version: next.Version})
	if r.Word() != (election.Word{}) {
		t.Error("an agent that is no voter counts")
	}
	r.Ack("b", election.WordAck{Rank: rank, Version: next.Version})
	if r.Word().ID != rank || r.Word().Text != "x" {
		t.Errorf("it has %+v", r.Word())
	}
}

func TestW5AMarkedJointRosterNeedsBothHalves(t *testing.T) {
	joint := *roster3
	joint.Next, joint.Committed = []election.Voter{{Name: "a", Peer: "a"}, {Name: "c", Peer: "c"}, {Name: "d", Peer: "d"}}, true
	r := NewRegister(7, 100, &joint)
	vote(r, "a", election.Word{})
	vote(r, "b", election.Word{})
	if r.Ready() {
		t.Fatal("read without the new half")
	}
	vote(r, "c", wordOf(6, 1, "x"))
	if got := r.Outstanding(); got.Text != "x" {
		t.Fatalf("it writes %+v", got)
	}
	wordAck(r, "a", rankOf(7, 101))
	wordAck(r, "b", rankOf(7, 101))
	if r.Ready() {
		t.Fatal("written without the new half")
	}
	wordAck(r, "d", rankOf(7, 101))
	if !r.Ready() {
		t.Error("not ready with both halves")
	}
}

func TestW7TheNextLifeNumbersItsWritingsAboveThoseOfTheFormer(t *testing.T) {
	config := election.Config{Life: 2}
	former := election.Config{Life: 1}
	r := NewRegister(7, config.FirstNumber(), roster3)
	vote(r, "a", wordOf(7, former.FirstNumber()+1<<39, "x"))
	vote(r, "b", election.Word{})
	if got := r.Outstanding(); !got.Newer(wordOf(7, former.FirstNumber()+1<<39, "")) {
		t.Errorf("it writes %+v", got)
	}
}

// As in `doyen once`, a holder writes that its job has begun, then that it has ended, and releases.
func TestW5AWriteThatCameBeforeTheReleaseIsKept(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	keep := func(w election.Word) {
		d.voter.Keep(at(1), "a", election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: w})
	}
	keep(wordOf(5, 1, "begun")) // being written now
	keep(wordOf(5, 2, "ended"))
	d.voter.Release(at(2), "a", election.Release{Election: "e", Term: 5, Holder: holderA})
	d.write(at(3))
	d.write(at(4))
	if got := d.disk.Words["e"]; got.Text != "ended" {
		t.Errorf("the word is %q", got.Text)
	}
}

// A start had no room to write the words again. Until they are written, a power cut may lose them.
func TestW2AWordThatAStartFoundUnsyncedIsWrittenBeforeItIsAcknowledged(t *testing.T) {
	s, kept := state(), wordOf(5, 1, "kept")
	s.Grants = map[election.Name]election.Grant{"e": {Term: 5, Holder: holderA, Lease: testLease}}
	s.Words, s.KeepsWords, s.Unsynced = map[election.Name]election.Word{"e": kept}, true, true
	d := newDesk(t, s)
	ask := election.WordWrite{Election: "e", Holder: holderA, Version: roster3.Version, Word: kept}
	d.voter.Keep(at(1), "a", ask)
	w := d.ledger.Next(at(1))
	if w == nil || len(w.Words) != 1 || w.Words[0].Word != kept || w.Words[0].Election != "e" {
		t.Fatalf("it writes %+v, want the word", w)
	}
	d.ledger.Failed(w.Write, at(1))
	d.voter.Keep(at(2), "a", ask)
	if out := d.ledger.Take(); len(out) != 0 {
		t.Errorf("it sends %+v before the word is on disk", out)
	}
	later := at(2).Add(2 * testLease)
	d.write(later)
	d.voter.Keep(later, "a", ask)
	if out := d.ledger.Take(); !acked(out, kept.Rank) {
		t.Errorf("after the write it sends %+v", out)
	}
	if d.disk.Unsynced {
		t.Error("the words on disk are called unsynced")
	}
}

// A power cut could undo a reported write. Then other agents would take the agent's disk for an older copy.
func TestWritesAreNotReportedWhileWordsAreUnsynced(t *testing.T) {
	s := state()
	s.KeepsWords, s.Unsynced, s.Writes, s.Words = true, true, 9, map[election.Name]election.Word{"e": wordOf(5, 1, "x")}
	l := NewLedger(s, time.Second)
	if l.Sure() {
		t.Error("they are reported at the start")
	}
	if p := l.Next(at(1)); p == nil || l.Sure() || !l.Persisted(p.Write) || !l.Sure() || l.Writes() != 10 {
		t.Errorf("after %+v: sure %t, %d writes", p, l.Sure(), l.Writes())
	}
}
