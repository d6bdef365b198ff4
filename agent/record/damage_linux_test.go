package record

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

// inHeap is a record as its file has it, in ordinary memory, with one of each kind.
func inHeap(t testing.TB) *Record {
	t.Helper()
	h := header{lineage: 0xa11ce, host: host{boot: [16]byte{1, 2, 3}, timeNS: 4}, device: 5, inode: 6, joinedAt: 7, secret: [32]byte{8, 9}, peer: "peer-a"}
	m := make(memory, words)
	h.put(m)
	r := newRecord("", nil, m, h)
	r.life.store(m, []uint64{3, 4, 5, uint64(time.Second), 6})
	r.terms.store(m, r.last[:])
	r.voters.store(m, putVoters(new([votersRoom]uint64), nil))
	r.table = newTable(m, m[wordCheck])
	m[wordState] = word(alive)
	filled(t, r)
	return r
}

func anybody(header) error { return nil }

// Flip any byte: what is read is what was there, or nothing at all (K7).
func TestADamagedRecordIsReadAsItWasOrNotAtAll(t *testing.T) {
	r := inHeap(t)
	_, want, err := read("", nil, r.memory, anybody)
	if err != nil {
		t.Fatal(err)
	}
	var places []int
	for i := range wordRows {
		if i < wordVoters+2*voterWords || i%16 == 0 { // most of the voters' place is empty
			places = append(places, i)
		}
	}
	for _, slot := range []int{0, rows - 2, rows - 1} { // a free one, and the two that are used
		for i := range rowWords {
			places = append(places, wordRows+slot*rowWords+i)
		}
	}
	refused := 0
	for _, at := range places {
		for bit := 0; bit < 64; bit += 8 {
			r.memory[at] ^= 0x81 << bit
			_, got, err := read("", nil, r.memory, anybody)
			if err != nil {
				refused++
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("word %d, bit %d: read as %+v", at, bit, got)
			}
			r.memory[at] ^= 0x81 << bit
		}
	}
	if refused < 8*(wordLife+2*rowWords/3) {
		t.Errorf("only %d changes were noticed", refused)
	}
}

// A life dies between any two stores: what it was about to write is not there.
func TestTheCommitWordIsStoredLast(t *testing.T) {
	for commit := range 4 {
		v := newValue(3, 5, 1)
		m := make(memory, 64)
		for range 1 + commit {
			v.store(m, []uint64{1, 2, 3, 4, 5})
		}
		before := m[v.at]
		for n := v.at + 1; n < len(m); n++ {
			store := v
			died := func() (died bool) {
				defer func() { died = recover() != nil }()
				store.store(m[:n], []uint64{6, 7, 8, 9, 10}) // there is no more memory than that
				return
			}()
			if died && m[v.at] != before {
				t.Fatalf("the commit word was stored before word %d", n)
			}
			if died {
				if got, whole := v.load(m, make([]uint64, 5)); !whole || got[0] != 1 {
					t.Fatalf("died before word %d: %v, whole %t", n, got, whole)
				}
				continue
			}
			break
		}
	}
}

// The same for all that one call writes: with any of its stores but none of the commit words,
// each row is as it was.
func TestEachRowIsOldOrNew(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	r := inHeap(t)
	commits := make([]bool, words)
	commits[wordTerms] = true
	for slot := range rows {
		commits[wordRows+slot*rowWords+rowAuthority], commits[wordRows+slot*rowWords+rowActors] = true, true
	}
	before := append(memory(nil), r.memory...)
	_, old, _ := read("", nil, before, anybody)
	fresh := election.Authority{Election: "fresh", Highest: 1}
	newer := defaults
	newer.Term, newer.Until = 4, 5
	if err := r.Write(&election.LifeRecord{Retired: 2, Spent: 3, Rows: []election.Authority{newer, fresh}}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		m := append(memory(nil), before...)
		for i, w := range r.memory {
			if w != m[i] && !commits[i] && rng.IntN(2) == 0 {
				m[i] = w
			}
		}
		if _, got, err := read("", nil, m, anybody); err != nil || !reflect.DeepEqual(got, old) {
			t.Fatalf("seed %d: read as %+v, %v", seed, got, err)
		}
	}
	if _, got, err := read("", nil, r.memory, anybody); err != nil || !reflect.DeepEqual(got.Rows, []election.Authority{newer, fresh, payments}) {
		t.Errorf("after all: %+v, %v", got, err)
	}
}

// The next version must read, or refuse, the records of this one.
func TestTheLayoutOfTheRecordIsWhatItWas(t *testing.T) {
	r := inHeap(t)
	bytes := make([]byte, 0, size)
	for _, w := range r.memory {
		bytes = binary.LittleEndian.AppendUint64(bytes, w)
	}
	var text strings.Builder
	for _, part := range []struct {
		name     string
		from, to int
	}{{"header", 0, wordVoters}, {"voters", wordVoters, wordRows}, {"free row 0", wordRows, wordRows + rowWords}, {"row 1022", wordRows + 1022*rowWords, wordRows + 1023*rowWords}, {"row 1023", wordRows + 1023*rowWords, words}} {
		fmt.Fprintf(&text, "%s\n", part.name)
		for line := range strings.Lines(hex.Dump(bytes[part.from*8 : part.to*8])) {
			if !strings.Contains(line, strings.Repeat("00 ", 8)+" "+strings.Repeat("00 ", 8)) {
				text.WriteString(line)
			}
		}
	}
	golden.Check(t, "record.golden", fmt.Sprintf("%s%d bytes\n", text.String(), len(bytes)))
}

func TestEveryReasonHasANumber(t *testing.T) {
	for i, why := range reasons[1:] {
		a := election.Authority{Election: "e", Highest: 2, Term: 2, Until: 3, Ending: election.Ending{Reason: why, To: "b", StopBy: 3}}
		var room [authorityRoom]uint64
		if got, ok := getAuthority(putAuthority(&room, 9, &a), "e", 9); !ok || got != a {
			t.Errorf("reason %d: %+v, %t", i, got, ok)
		}
	}
	a := election.Authority{Election: "e", Highest: 2, Term: 2, Until: 3, Ending: election.Ending{Reason: "a new one", StopBy: 3}}
	var room [authorityRoom]uint64
	if got, ok := getAuthority(putAuthority(&room, 9, &a), "e", 9); !ok || got.Ending.Reason != election.ReasonResigned {
		t.Errorf("an unknown reason: %+v, %t: it must still end", got, ok)
	}
}

// Whatever is changed in a record: no panic, and it is read as it was, or refused.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 24, 1})
	f.Add([]byte{0, 0, 0, 1, 0, 16, 7, 255})
	f.Fuzz(func(t *testing.T, edits []byte) {
		r := inHeap(t)
		_, want, err := read("", nil, r.memory, anybody)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(edits) >= 4; edits = edits[4:] {
			at := (int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])) % size
			r.memory[at/8] ^= uint64(edits[3]) << (at % 8 * 8)
		}
		if _, got, err := read("", nil, r.memory, anybody); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("read as %+v", got)
		}
	})
}

// Whatever is in a file, its checks right or not: no panic.
func FuzzValue(f *testing.F) {
	f.Add(make([]byte, 300))
	f.Fuzz(func(t *testing.T, data []byte) {
		content := make([]uint64, votersRoom)
		for i := range min(len(data)/8, len(content)) {
			content[i] = binary.LittleEndian.Uint64(data[8*i:])
		}
		n := min(len(data)/8, len(content))
		getVoters(content[:n])
		getAuthority(append([]uint64{1}, content[:min(n, authorityRoom-1)]...), "e", 0)
		getActors(content[:actorsRoom])
	})
}
