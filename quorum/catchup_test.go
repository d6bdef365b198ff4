package quorum

import (
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// replacing is a joint roster in which c and d replace a and b: v votes in both halves.
func replacing() *election.Roster {
	r := *roster3
	r.Version, r.Committed = election.Version{Driver: 1, Counter: 1}, true
	r.Next = []election.Voter{{Name: "c", Peer: "c"}, {Name: "d", Peer: "d"}, {Name: "v", Peer: "v"}}
	return &r
}

// behind returns a voter that has been asked to catch up, and the proposal that asked it.
func behind(t *testing.T, own ...election.NamedWord) (*desk, election.RosterPropose) {
	t.Helper()
	s := state()
	s.Roster, s.Words, s.KeepsWords = replacing(), map[election.Name]election.Word{}, len(own) > 0
	for _, w := range own {
		s.Words[w.Election] = w.Word
	}
	d := newDesk(t, s)
	p := election.RosterPropose{Driver: 1, Holder: holderA, Roster: *replacing(), CatchUp: true}
	if got := d.accepts(t, p); got == election.CaughtUp {
		t.Fatal("it has caught up before it has asked anybody")
	}
	return d, p
}

func (d *desk) accepts(t *testing.T, p election.RosterPropose) election.WordsHeld {
	t.Helper()
	d.voter.Propose(at(1), "a", p)
	for _, m := range d.write(at(1)) {
		if a, ok := m.Message.(election.RosterAccept); ok {
			return a.Words
		}
	}
	t.Fatal("it does not accept")
	return 0
}

func (d *desk) read(from election.PeerID, words ...election.NamedWord) {
	d.voter.Read(from, election.Words{Version: replacing().Version, Words: words})
}

func TestW9AVoterCatchesUpWithMajoritiesOfBothHalves(t *testing.T) {
	d, p := behind(t, election.NamedWord{Election: "e", Word: wordOf(3, 1, "own")})
	wants, _ := d.voter.Wants(at(1))
	if len(wants) != 4 {
		t.Fatalf("it asks %+v, want a, b, c and d", wants)
	}
	if again, wake := d.voter.Wants(at(2)); len(again) != 0 || wake != at(1).Add(timeout/2) {
		t.Fatalf("it asks again at once: %+v, wakes at %d", again, wake)
	}
	d.read("a", election.NamedWord{Election: "e", Word: wordOf(4, 1, "newer")}, election.NamedWord{Election: "f", Word: wordOf(2, 1, "other")})
	if got := d.accepts(t, p); got != election.HasWords {
		t.Fatalf("with the former half alone it reports %d", got)
	}
	d.read("b", election.NamedWord{Election: "e", Word: wordOf(2, 9, "older")})
	if got := d.accepts(t, p); got != election.HasWords {
		t.Fatalf("with the former half alone it reports %d", got)
	}
	d.read("stranger")
	d.read("c")
	if len(d.disk.Words) != 1 {
		t.Fatalf("it wrote %+v before it knew", d.disk.Words)
	}
	d.ask(at(3), holderA, 9, 1, 0)
	if g := d.ledger.State().Grant("e"); g.Term == 9 {
		t.Error("a vote is given while the words are being written")
	}
	d.write(at(3))
	if e, f := d.disk.Words["e"], d.disk.Words["f"]; e != wordOf(4, 1, "newer") || f != wordOf(2, 1, "other") {
		t.Errorf("on disk are %+v and %+v", e, f)
	}
	if got := d.accepts(t, p); got != election.CaughtUp {
		t.Errorf("it reports %d, want that it has caught up", got)
	}
	if wants, _ := d.voter.Wants(at(9999)); len(wants) != 0 {
		t.Errorf("it asks on: %+v", wants)
	}
}

// A start may find words that are not synced. They count for a change of voters only once they are written again.
func TestW9AVoterCatchesUpOnlyWithWordsOnItsDisk(t *testing.T) {
	s := state()
	s.Roster, s.KeepsWords, s.Unsynced = replacing(), true, true
	s.Words = map[election.Name]election.Word{"e": wordOf(3, 1, "own")}
	d := newDesk(t, s)
	d.voter.CatchUp()
	for _, from := range []election.PeerID{"a", "b", "c", "d"} {
		d.read(from)
	}
	if got := d.voter.wordsAt(replacing().Version); got != election.HasWords {
		t.Errorf("it reports %d before the write", got)
	}
	d.write(at(1))
	d.voter.Wants(at(2))
	if got := d.voter.wordsAt(replacing().Version); got != election.CaughtUp {
		t.Errorf("it reports %d after the write", got)
	}
}

func TestW9WordsOfAnotherRosterDoNotCount(t *testing.T) {
	d, p := behind(t)
	for _, from := range []election.PeerID{"a", "b", "c", "d"} {
		d.voter.Read(from, election.Words{Version: roster3.Version})
	}
	if got := d.accepts(t, p); got == election.CaughtUp {
		t.Error("it has caught up with answers at another version")
	}
	if _, ok := d.voter.Page(election.WordsWanted{Version: roster3.Version}); ok {
		t.Error("it answers for a roster that it does not have")
	}
}

func TestW9WordsAreReadPageByPage(t *testing.T) {
	var own []election.NamedWord
	for i := range 300 {
		own = append(own, election.NamedWord{Election: election.Name("job" + string(rune('a'+i/26)) + string(rune('a'+i%26))), Word: wordOf(3, 1, strings.Repeat("x", election.MaxWord))})
	}
	giver, _ := behind(t, own...)
	taker, p := behind(t)
	want, pages := election.WordsWanted{Version: replacing().Version}, 0
	for more := true; more; pages++ {
		page, ok := giver.voter.Page(want)
		if !ok {
			t.Fatal("no page")
		}
		next := taker.voter.Read("a", page)
		if again := taker.voter.Read("a", page); pages > 0 && len(again) != 0 {
			t.Fatalf("a page that came twice counts twice: %+v", again)
		}
		if more = len(next) == 1; more {
			want = next[0].Message.(election.WordsWanted)
		}
	}
	taker.read("c")
	taker.write(at(2))
	if pages != 3 || len(taker.disk.Words) != len(own) || taker.accepts(t, p) != election.CaughtUp {
		t.Errorf("%d pages, %d words of %d", pages, len(taker.disk.Words), len(own))
	}
}

func TestW9TheDriverWaitsUntilMajoritiesOfBothHalvesHaveCaughtUp(t *testing.T) {
	next := replacing().Next
	propose := func(words map[election.PeerID]election.WordsHeld) *Driver {
		d := NewDriver(1, testDrift, roster3, next)
		for range 2 { // unmarked, then marked
			for _, id := range []election.PeerID{"a", "b", "c", "v"} {
				d.Accept(at(1), id, election.RosterAccept{Driver: 1, Version: d.Proposal().Version, Highest: 3, Words: words[id]})
			}
			d.Advance(at(1))
		}
		return d
	}
	if d := propose(nil); d.Proposal().Joint() {
		t.Error("without words it waits")
	}
	d := propose(map[election.PeerID]election.WordsHeld{"a": election.HasWords})
	if !d.Proposal().Joint() || !d.CatchesUp() || !d.Lacks("c") {
		t.Fatal("it goes on though a voter has words and none has caught up")
	}
	for i, id := range []election.PeerID{"c", "v", "a"} {
		if !d.Proposal().Joint() {
			t.Fatalf("it goes on after %d have caught up", i)
		}
		d.Accept(at(2), id, election.RosterAccept{Driver: 1, Version: d.Proposal().Version, Highest: 3, Words: election.CaughtUp})
		d.Advance(at(2))
	}
	if d.Proposal().Joint() {
		t.Error("majorities of both halves have caught up, and it waits")
	}
}

func TestW10AVoterThatIsTakenOffOrAddedAgainHasNoWords(t *testing.T) {
	without := *roster3
	without.Version = election.Version{Driver: 1, Counter: 2}
	without.Voters = []election.Voter{{Name: "a", Peer: "a"}, {Name: "b", Peer: "b"}}
	s := state()
	s.KeepsWords, s.Words = true, map[election.Name]election.Word{"e": wordOf(3, 1, "x")}
	d := newDesk(t, s)
	d.voter.Adopt(at(1), &without, false)
	d.write(at(1))
	if d.disk.KeepsWords || len(d.disk.Words) != 0 || d.ledger.Word("e") != (election.Word{}) {
		t.Errorf("taken off, it keeps %+v", d.disk.Words)
	}
	// A voter that may go back to the former roster keeps its words until it is added again.
	d = newDesk(t, s)
	d.voter.Adopt(at(1), &without, true)
	d.write(at(1))
	if !d.disk.KeepsWords || len(d.disk.Words) != 1 {
		t.Error("it may go back, and has dropped its words")
	}
	again := without
	again.Version, again.Next = election.Version{Driver: 2}, roster3.Voters
	d.voter.Propose(at(2), "a", election.RosterPropose{Driver: 2, Holder: holderA, Roster: again})
	d.write(at(2))
	if d.disk.KeepsWords || len(d.disk.Words) != 0 {
		t.Errorf("added again, it keeps %+v", d.disk.Words)
	}
}
