package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

func TestEveryMessageSurvivesTheWireUnchanged(t *testing.T) {
	for name, of := range messageOf {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			sent := of(draw{t})
			data, err := EncodeMessage(sent)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeMessage(data)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, sent) {
				t.Fatalf("got %#v, sent %#v", got, sent)
			}
			if election.Kind(got) != name {
				t.Fatalf("kind %q, want %q", election.Kind(got), name)
			}
			if again, _ := EncodeMessage(got); !bytes.Equal(again, data) {
				t.Fatalf("equal messages, different bytes: %x and %x", again, data)
			}
		}))
	}
}

// An agent can send only the kinds in the table.
func TestEachKindHasItsNumberAndItsName(t *testing.T) {
	var known []string
	numbers := map[uint64]bool{}
	for _, k := range kinds {
		known = append(known, k.typ.Name())
		numbers[k.number] = true
		if k.name != k.typ.Name() {
			t.Errorf("kind %d is called %s, its type %s", k.number, k.name, k.typ.Name())
		}
	}
	if len(numbers) != len(kinds) {
		t.Errorf("%d numbers for %d kinds", len(numbers), len(kinds))
	}
	slices.Sort(known)
	if drawn := slices.Sorted(maps.Keys(messageOf)); !slices.Equal(drawn, known) {
		t.Errorf("these tests draw %v", drawn)
	}
}

// Later versions must be able to read messages of this version.
func TestTheWireFormatIsWhatItWas(t *testing.T) {
	var lines strings.Builder
	for i, m := range samples() {
		data, err := EncodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		if election.Kind(m) != kinds[i].name {
			t.Fatalf("sample %d is a %s, want a %s", i, election.Kind(m), kinds[i].name)
		}
		fmt.Fprintf(&lines, "%s %x\n", election.Kind(m), data)
	}
	if n := len(samples()); n != len(kinds) {
		t.Errorf("%d samples of %d kinds", n, len(kinds))
	}
	golden.Check(t, "messages.golden", lines.String())
}

// revised is a roster that uses all fields of level 2.
func revised() election.Roster {
	return election.Roster{Cluster: "c0ffee", Version: election.Version{Driver: 4}, Voters: []election.Voter{{Name: "ann", Peer: "12D3KooWAnn"}},
		Rights: []election.Right{
			{Election: "default", MaxPriority: 100},
			{Election: "pay", Agents: []election.PeerID{"12D3KooWAnn", "12D3KooWBob"}, MaxPriority: 7},
		},
		Settings: election.Settings{Algorithm: "ring", Lease: 2 * time.Second}}
}

func TestTheWireFormatOfLevel2IsWhatItWas(t *testing.T) {
	data, err := EncodeMessage(election.RosterPropose{Driver: 4, Holder: election.Holder{Peer: "12D3KooWAnn", Lineage: 0xa11}, Roster: revised()})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "level2.golden", fmt.Sprintf("%x\n", data))
}

// Agents up to 0.5.0 decode a candidacy without its meta.
func TestAMetaIsWhatItWasAndNothingToAgentsBefore(t *testing.T) {
	m := election.Candidacies{Lineage: 0xa11, Serial: 2, Candidacies: []election.Candidacy{{Election: "pay", Priority: 7, Meta: "10.0.0.1:80 é"}}}
	data, err := EncodeMessage(m)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "meta.golden", fmt.Sprintf("%x\n", data))
	var got struct {
		_    struct{} `cbor:",toarray"`
		Kind uint64
		Body struct {
			Candidacies []struct {
				Election election.Name `cbor:"1,keyasint"`
				Priority int           `cbor:"2,keyasint"`
			} `cbor:"3,keyasint,omitempty"`
		}
	}
	if err := messages.Unmarshal(data, &got); err != nil || len(got.Body.Candidacies) != 1 || got.Body.Candidacies[0].Priority != 7 {
		t.Errorf("an agent of before reads %+v, %v", got, err)
	}
	var invalid *InvalidError
	if m, err := DecodeMessage(bytes.Replace(data, []byte("é"), []byte("\xff\xfe"), 1)); !errors.As(err, &invalid) {
		t.Errorf("a meta that is not UTF-8: got %#v, %v", m, err)
	}
}

func TestRightsAndSettingsAreBounded(t *testing.T) {
	for name, spoil := range map[string]func(*election.Roster){
		"too many":          func(r *election.Roster) { r.Rights = make([]election.Right, election.MaxRights+1) },
		"too large":         func(r *election.Roster) { r.Rights[0].Agents = make([]election.PeerID, election.MaxRightsSize) },
		"not sorted":        func(r *election.Roster) { r.Rights[0].Election = "zoo" },
		"limits nothing":    func(r *election.Roster) { r.Rights[0].MaxPriority = 0 },
		"roster election":   func(r *election.Roster) { r.Rights[0].Election = election.RosterElection },
		"unsorted agents":   func(r *election.Roster) { slices.Reverse(r.Rights[1].Agents) },
		"negative priority": func(r *election.Roster) { r.Rights[0].MaxPriority = -1 },
		"unknown algorithm": func(r *election.Roster) { r.Settings.Algorithm = "dice" },
		"negative lease":    func(r *election.Roster) { r.Settings.Lease = -1 },
		"lease of a day":    func(r *election.Roster) { r.Settings.Lease = 24 * time.Hour },
	} {
		r := revised()
		spoil(&r)
		if _, err := EncodeMessage(election.RosterPropose{Driver: 4, Holder: election.Holder{Peer: "p", Lineage: 1}, Roster: r}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnUnknownKindIsItsOwnError(t *testing.T) {
	newer, err := messages.Marshal(envelope{Kind: 4711, Body: []byte{0xa0}})
	if err != nil {
		t.Fatal(err)
	}
	obituary, err := hex.DecodeString("82181aa3016b313244334b6f6f57416e6e02190a1103582001020300000000000000000000000000000000000000000000000000000000ff")
	if err != nil {
		t.Fatal(err)
	}
	for kind, data := range map[uint64][]byte{4711: newer, 26: obituary} { // 26 is a kind of 0.3.0
		_, err = DecodeMessage(data)
		var unknown *UnknownKindError
		if !errors.As(err, &unknown) || unknown.Kind != kind {
			t.Errorf("kind %d: got %v", kind, err)
		}
	}
}

func TestFieldsOfALaterVersionAreIgnored(t *testing.T) {
	body, err := messages.Marshal(map[int]any{1: 7, 60: map[string]int{"new": 1}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := messages.Marshal(envelope{Kind: 14, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeMessage(data)
	if err != nil || got != (election.Inquiry{ID: 7}) {
		t.Fatalf("got %#v, %v", got, err)
	}
}

func TestWhatIsNotAMessageIsInvalid(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing":                 {},
		"a number":                {0x07},
		"an empty array":          {0x80},
		"three elements":          {0x83, 0x0e, 0xa0, 0xa0},
		"a null for the fields":   {0x82, 0x0e, 0xf6},
		"an array for the fields": {0x82, 0x0e, 0x81, 0x01},
		"a key twice":             {0x82, 0x0e, 0xa2, 0x01, 0x07, 0x01, 0x08},
		"an indefinite array":     {0x9f, 0x0e, 0xa0, 0xff},
		"a tag":                   {0x82, 0x0e, 0xa1, 0x01, 0xc2, 0x41, 0x01},
		"trailing bytes":          {0x82, 0x0e, 0xa0, 0x00},
		"a text for a number":     {0x82, 0x0e, 0xa1, 0x01, 0x61, 'a'},
		"an array said to be big": {0x82, 0x0f, 0xa1, 0x04, 0x9a, 0xff, 0xff, 0xff, 0xff},
		"nested too deep":         append([]byte{0x82, 0x0e, 0xa1, 0x18, 0x3c}, append(bytes.Repeat([]byte{0x81}, 50), 0x01)...),
		"over the limit":          make([]byte, MaxMessage+1),
	} {
		m, err := DecodeMessage(data)
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %#v, %v", name, m, err)
		}
	}
}

func TestInvalidMessagesAreRefusedOnBothSides(t *testing.T) {
	h := election.Holder{Peer: "p", Lineage: 1}
	r := election.Roster{Cluster: "c", Version: election.Version{Counter: 1}, Voters: []election.Voter{{Name: "a", Peer: "p"}}}
	with := func(change func(*election.Roster)) election.Message {
		s := r
		change(&s)
		return election.Report{Roster: &s}
	}
	tooMany := func(r *election.Roster) {
		r.Voters = nil
		for i := range election.MaxVoters + 1 {
			r.Voters = append(r.Voters, election.Voter{Name: fmt.Sprintf("h%03d", i), Peer: election.PeerID(fmt.Sprintf("p%03d", i))})
		}
	}
	for name, m := range map[string]election.Message{
		"no election":     election.BullyAnswer{},
		"bad election":    election.BullyAnswer{Election: "Payments!"},
		"no rank":         election.BullyElection{Election: "a"},
		"negative rank":   election.BullyElection{Election: "a", Rank: election.Rank{Priority: -1, Peer: "p"}},
		"long detail":     election.GenesisRefuse{Cluster: "a", Reason: 1, Detail: strings.Repeat("x", maxDetail+1)},
		"term 0":          election.BullyCoordinator{Election: "a", Leader: h},
		"term at the end": election.BullyCoordinator{Election: "a", Term: 1 << 63, Leader: h},
		"no holder":       election.VoteRequest{Election: "a", Term: 1, Lease: time.Second, Roster: r},
		"no lease":        election.VoteRequest{Election: "a", Term: 1, Holder: h, Roster: r},
		"negative lease":  election.VoteRequest{Election: "a", Term: 1, Holder: h, Lease: -1, Roster: r},
		"endless lease":   election.VoteRequest{Election: "a", Term: 1, Holder: h, Lease: 1 << 62, Roster: r},
		"no roster":       election.VoteRequest{Election: "a", Term: 1, Holder: h, Lease: time.Second},
		"no refusal":      election.VoteRefusal{Election: "a", Term: 1, Holder: h},
		"unsorted claims": election.Heartbeat{Claims: []election.Claim{{Election: "b", Term: 1}, {Election: "a", Term: 1}}},
		"progress twice":  election.Heartbeat{Progress: []election.Progress{{Peer: "a"}, {Peer: "a"}}},
		"nobody's":        election.HeartbeatAck{Progress: []election.Progress{{}}},
		"claim twice":     election.Heartbeat{Claims: []election.Claim{{Election: "a", Term: 1}, {Election: "a", Term: 2}}},
		"bad target":      election.Release{Election: "a", Term: 1, Holder: h, Target: "a b"},
		"long peer":       election.RingAck{Election: "a", Round: election.RoundID{Origin: "p"}, Best: election.PeerID(strings.Repeat("p", maxPeerID+1))},
		"no cluster":      with(func(r *election.Roster) { r.Cluster = "" }),
		"version 0.0":     with(func(r *election.Roster) { r.Version = election.Version{} }),
		"no voters":       with(func(r *election.Roster) { r.Voters = nil }),
		"too many voters": with(tooMany),
		"long meta":       election.Candidacies{Candidacies: []election.Candidacy{{Election: "a", Meta: strings.Repeat("m", election.MaxMeta+1)}}},
		"a voter twice":   with(func(r *election.Roster) { r.Next = []election.Voter{{Name: "a", Peer: "p"}, {Name: "b", Peer: "p"}} }),
		"a name twice":    with(func(r *election.Roster) { r.Next = []election.Voter{{Name: "a", Peer: "p"}, {Name: "a", Peer: "q"}} }),
	} {
		var invalid *InvalidError
		if _, err := EncodeMessage(m); !errors.As(err, &invalid) {
			t.Errorf("encode %s: got %v", name, err)
		}
		body, err := messages.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		data, err := messages.Marshal(envelope{Kind: byType[reflect.TypeOf(m)].number, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeMessage(data); !errors.As(err, &invalid) {
			t.Errorf("decode %s: got %#v, %v", name, got, err)
		}
	}
}

func TestTheFullestMessagesFit(t *testing.T) {
	long := election.PeerID(strings.Repeat("p", maxPeerID))
	var voters []election.Voter
	for i := range election.MaxVoters {
		voters = append(voters, election.Voter{Name: fmt.Sprintf("%063d", i), Peer: election.PeerID(fmt.Sprintf("%0128d", i))})
	}
	full := election.Roster{Cluster: strings.Repeat("c", maxCluster), Version: election.Version{Driver: maxTerm, Counter: 1}, Voters: voters, Next: voters, Floor: maxTerm}
	beat := election.Heartbeat{Lineage: 1 << 63, Send: 1 << 63, Version: full.Version, Echo: 1 << 62}
	report := election.Report{ID: 1 << 63, Roster: &full}
	for i := range election.MaxElections {
		n := election.Name(fmt.Sprintf("%063d", i))
		beat.Claims = append(beat.Claims, election.Claim{Election: n, Term: maxTerm, Remaining: maxDuration, Rank: election.Rank{Priority: maxPriority, JoinedAt: -1 << 62, Peer: long}})
		report.Records = append(report.Records, election.Record{Election: n, Term: maxTerm, Holder: election.Holder{Peer: long, Lineage: 1 << 63}, Remaining: maxDuration})
	}
	for i := range 2*election.MaxVoters + 1 {
		beat.Progress = append(beat.Progress, election.Progress{Peer: election.PeerID(fmt.Sprintf("%0128d", i)), Lineage: 1 << 63, Stamp: 1 << 62, Writes: 1 << 63})
	}
	for _, m := range []election.Message{beat, report} {
		data, err := EncodeMessage(m)
		if err != nil {
			t.Errorf("%s: %v", election.Kind(m), err)
			continue
		}
		if _, err := DecodeMessage(data); err != nil {
			t.Errorf("%s: %v", election.Kind(m), err)
		}
	}
}

func TestWhatIsNotAMessageIsNotEncoded(t *testing.T) {
	for _, m := range []election.Message{nil, &election.Inquiry{}} {
		if _, err := EncodeMessage(m); err == nil {
			t.Errorf("%T was encoded", m)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "messages.golden"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(golden)) {
		var kind string
		var data []byte
		if _, err := fmt.Sscanf(line, "%s %x", &kind, &data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMessage(data)
		if err != nil {
			return
		}
		again, err := EncodeMessage(m)
		if err != nil {
			t.Fatalf("decoded %#v, which can't be encoded: %v", m, err)
		}
		if _, err := DecodeMessage(again); err != nil {
			t.Fatalf("encoded %#v, which can't be decoded: %v", m, err)
		}
	})
}

func BenchmarkHeartbeat(b *testing.B) {
	m := election.Heartbeat{Lineage: 1 << 60, Send: 100, Version: election.Version{Counter: 1}, Claims: []election.Claim{{
		Election: "default", Term: 12, Remaining: time.Second,
		Rank: election.Rank{Priority: 100, JoinedAt: 1 << 60, Peer: "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5"},
	}}}
	for b.Loop() {
		data, err := EncodeMessage(m)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeMessage(data); err != nil {
			b.Fatal(err)
		}
	}
}
