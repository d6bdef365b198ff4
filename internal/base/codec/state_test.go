package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

func TestTheStateSurvivesTheDiskUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := draw{t}.state()
		data, err := EncodeState(written)
		if err != nil {
			t.Fatal(err)
		}
		read, err := DecodeState(data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, written) {
			t.Fatalf("read %#v, written %#v", read, written)
		}
		if again, _ := EncodeState(read); !bytes.Equal(again, data) {
			t.Fatal("equal states, different bytes")
		}
	})
}

func sampleState(t testing.TB) []byte {
	data, err := EncodeState(election.State{
		Peer: "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5",
		Roster: &election.Roster{
			Cluster: "c0ffee", Version: election.Version{Counter: 1},
			Voters: []election.Voter{{Name: "a", Peer: "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5"}},
		},
		Grants: map[election.Name]election.Grant{"default": {Term: 3, Holder: election.Holder{Peer: "p", Lineage: 9}, Lease: 1_200_000_000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fullState has every field set.
func fullState() election.State {
	const ann, bob = election.PeerID("12D3KooWAnn"), election.PeerID("12D3KooWBob")
	v := election.Version{Driver: 4, Counter: 2}
	old := []election.Voter{{Name: "ann", Peer: ann}, {Name: "bob", Peer: bob}}
	joint := election.Roster{Cluster: "c0ffee", Version: v, Voters: old, Next: old[:1], Floor: 3, Committed: true}
	former := election.Roster{Cluster: "c0ffee", Version: election.Version{Driver: 3, Counter: 1}, Voters: old, Floor: 2}
	return election.State{
		Peer: ann, Roster: &joint, Former: &former,
		Pending:   &election.Genesis{Proposer: ann, Attempt: 5, Roster: former},
		Grants:    map[election.Name]election.Grant{"_roster": {Term: 4, Holder: election.Holder{Peer: bob, Lineage: 9}, Lease: 1_200_000_000}, "default": {Term: 3}},
		Seen:      map[election.Name]election.Term{"default": 7},
		Attempt:   5,
		Forgotten: 6,
		Writes:    31,
		Refused:   election.Version{Driver: 5, Counter: 1},
	}
}

// Later versions must be able to read this version's state files, which hold promises.
func TestTheStateFormatIsWhatItWas(t *testing.T) {
	golden.Check(t, "state.golden", string(sampleState(t)))
	s := fullState()
	for v, i := reflect.ValueOf(s), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "KeepsWords" && v.Type().Field(i).Tag.Get("cbor") != "-" {
			t.Errorf("the sample has no %s", v.Type().Field(i).Name)
		}
	}
	data, err := EncodeState(s)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "state-full.golden", fmt.Sprintf("%x\n", data))
}

// An older version drops fields of a roster that it does not know, so it must not start with such a state.
func TestAStateThatAnOlderVersionCantReadWholeHasANewerFormat(t *testing.T) {
	r := revised()
	for name, set := range map[string]func(*election.State){
		"roster":  func(s *election.State) { s.Roster = &r },
		"former":  func(s *election.State) { s.Former = &r },
		"pending": func(s *election.State) { s.Pending = &election.Genesis{Proposer: "p", Roster: r} },
	} {
		s := election.State{Peer: "p"}
		set(&s)
		data, err := EncodeState(s)
		if err != nil || data[formatAt+3] != 2 {
			t.Errorf("%s: format %d, %v; want 2", name, data[formatAt+3], err)
		}
		if read, err := DecodeState(data); err != nil || !reflect.DeepEqual(read, s) {
			t.Errorf("%s: read %+v, %v", name, read, err)
		}
	}
	if data, err := EncodeState(election.State{Peer: "p", KeepsWords: true}); err != nil || data[formatAt+3] != 3 {
		t.Errorf("words: format %d, %v; want 3", data[formatAt+3], err)
	}
	if data := sampleState(t); data[formatAt+3] != 1 {
		t.Errorf("format %d without any of that, want 1", data[formatAt+3])
	}
}

func TestEveryFlippedBitOfTheStateIsFound(t *testing.T) {
	good := sampleState(t)
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			_, err := DecodeState(bad)
			var damaged *DamagedStateError
			var foreign *ForeignStateError
			if inMagic := i < len(magic); inMagic && !errors.As(err, &foreign) || !inMagic && !errors.As(err, &damaged) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

func TestEveryCutStateIsDamaged(t *testing.T) {
	good := sampleState(t)
	for n := range good {
		_, err := DecodeState(good[:n])
		var damaged *DamagedStateError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "cut short") {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	_, err := DecodeState(append(bytes.Clone(good), 0))
	var damaged *DamagedStateError
	if !errors.As(err, &damaged) {
		t.Fatalf("with a byte more: %v", err)
	}
}

func TestAForeignFileAndANewerOneAreToldApart(t *testing.T) {
	_, err := DecodeState([]byte("#!/bin/sh\nexit 0\n"))
	var foreign *ForeignStateError
	if !errors.As(err, &foreign) {
		t.Errorf("foreign: %v", err)
	}
	_, err = DecodeState(seal(StateFormat+1, []byte("whatever the future brings")))
	var newer *NewerStateError
	if !errors.As(err, &newer) || newer.Format != StateFormat+1 {
		t.Errorf("newer: %v", err)
	}
}

func TestAnInvalidStateIsRefusedOnBothSides(t *testing.T) {
	for name, s := range map[string]election.State{
		"no peer":      {},
		"bad election": {Peer: "p", Grants: map[election.Name]election.Grant{"A": {Term: 1}}},
		"term 0":       {Peer: "p", Grants: map[election.Name]election.Grant{"a": {}}},
		"seen 0":       {Peer: "p", Seen: map[election.Name]election.Term{"a": 0}},
		"bad roster":   {Peer: "p", Roster: &election.Roster{}},
		"bad pending":  {Peer: "p", Pending: &election.Genesis{Proposer: "p"}},
	} {
		if _, err := EncodeState(s); err == nil {
			t.Errorf("%s was encoded", name)
		}
		body, err := states.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeState(seal(StateFormat, body))
		var damaged *DamagedStateError
		if !errors.As(err, &damaged) {
			t.Errorf("decode %s: %v", name, err)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	good := sampleState(f)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("#!/bin/sh\n"))
	f.Add(seal(StateFormat+1, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Decode the data as it is, and as a body with the right checksum: otherwise the fuzzer would never get
		// past the checksum.
		for _, file := range [][]byte{data, seal(StateFormat, data)} {
			s, err := DecodeState(file)
			if err != nil {
				continue
			}
			if _, err := EncodeState(s); err != nil {
				t.Fatalf("decoded %#v, which can't be encoded: %v", s, err)
			}
		}
	})
}
