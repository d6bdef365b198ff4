package quorum

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// A change of the voters must not lose a word that only voters of the former half have. Each voter that has the
// marked joint roster catches up: it takes the newest words that majorities of both halves have with that roster, and
// reports that to the driver. The driver waits for such reports before it proposes the stable roster (W9).

// maxPage is how many bytes the words of one page may have.
const maxPage = 128 << 10

// catchUp is what this voter has read of the other voters' words, for one marked joint roster.
type catchUp struct {
	version election.Version
	newest  map[election.Name]election.Word
	next    map[election.PeerID]election.Name // voter → the election after which its next page begins
	whole   map[election.PeerID]bool          // voters whose words were all read
	askAt   election.Instant
	writing uint64 // the generation that has the words; 0: they are not being written
	done    bool
}

// CatchUp makes this voter catch up for the present roster, if it is joint and marked.
func (v *Voter) CatchUp() {
	r := v.roster
	if v.barred || r == nil || !r.Committed || !r.Has(v.cfg.Self.Peer) || v.behind != nil && v.behind.version == r.Version {
		return
	}
	v.behind = &catchUp{version: r.Version, newest: map[election.Name]election.Word{},
		next: map[election.PeerID]election.Name{}, whole: map[election.PeerID]bool{v.cfg.Self.Peer: true}}
}

// wordsAt is which words the voter reports to have when it accepts a roster.
func (v *Voter) wordsAt(r election.Version) election.WordsHeld {
	switch {
	case v.behind != nil && v.behind.version == r && v.behind.done:
		return election.CaughtUp
	case v.ledger.State().KeepsWords:
		return election.HasWords
	}
	return election.NoWords
}

// Wants returns the due requests for pages of words, and when the next requests are due.
func (v *Voter) Wants(now election.Instant) (wants []election.Envelope, wake election.Instant) {
	b := v.behind
	if b == nil || b.done || b.version != v.roster.Version {
		return nil, election.Never
	}
	v.takeOver()
	if b.writing != 0 {
		return nil, election.Never // the end of the write wakes the agent
	}
	if now < b.askAt {
		return nil, b.askAt
	}
	b.askAt = now.Add(v.cfg.Heartbeat)
	for _, o := range v.roster.All() {
		if !b.whole[o.Peer] {
			wants = append(wants, v.want(o.Peer))
		}
	}
	return wants, b.askAt
}

func (v *Voter) want(of election.PeerID) election.Envelope {
	return election.Envelope{To: of, Message: election.WordsWanted{Version: v.behind.version, After: v.behind.next[of]}}
}

// Page answers a request for words. It returns false if this voter does not have that roster, or a
// write is in progress: then the other voter has to repeat its request.
func (v *Voter) Page(m election.WordsWanted) (election.Words, bool) {
	if v.barred || v.roster == nil || v.roster.Version != m.Version || !v.roster.Has(v.cfg.Self.Peer) || !v.idle() {
		return election.Words{}, false
	}
	page, size := election.Words{Version: m.Version, After: m.After}, 0
	for _, w := range v.ledger.Words() {
		if w.Election <= m.After {
			continue
		}
		if size += len(w.Election) + len(w.Word.Text) + 64; size > maxPage {
			page.More = true
			break
		}
		page.Words = append(page.Words, w)
	}
	return page, true
}

// Read takes a page of another voter's words, and returns the request for the next page, if there is one.
func (v *Voter) Read(from election.PeerID, m election.Words) []election.Envelope {
	b := v.behind
	if b == nil || b.done || b.writing != 0 || m.Version != b.version || !v.roster.Has(from) || b.whole[from] || m.After != b.next[from] {
		return nil
	}
	for _, w := range m.Words {
		if w.Word.Newer(b.newest[w.Election]) {
			b.newest[w.Election] = w.Word
		}
		b.next[from] = max(b.next[from], w.Election)
	}
	if m.More && len(m.Words) > 0 {
		return []election.Envelope{v.want(from)}
	}
	b.whole[from] = true
	v.takeOver()
	return nil
}

// takeOver writes the newest words once the words of majorities of both halves have been read.
func (v *Voter) takeOver() {
	b := v.behind
	if b.writing != 0 || !v.idle() || v.roster.Version != b.version || !Accepted(v.roster, func(id election.PeerID) bool { return b.whole[id] }) {
		return
	}
	b.writing = max(v.ledger.durable, v.ledger.urgent) // also wait for words that were unsynced at the start
	for _, w := range sortedWords(b.newest) {
		if w.Word.Newer(v.ledger.Word(w.Election)) {
			b.writing = v.ledger.KeepWord(w.Election, w.Word)
		}
	}
	if v.ledger.Durable(b.writing) {
		b.done = true
		return
	}
	v.adopting = b.writing // nothing else is handled until the words are durable
}

func sortedWords(words map[election.Name]election.Word) []election.NamedWord {
	sorted := make([]election.NamedWord, 0, len(words))
	for _, e := range slices.Sorted(maps.Keys(words)) {
		sorted = append(sorted, election.NamedWord{Election: e, Word: words[e]})
	}
	return sorted
}
