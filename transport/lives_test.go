package transport

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/doyen-election/doyen/election"
)

// helloOf020 is what 0.2.0 knows of a hello.
type helloOf020 struct {
	Protocol uint64 `cbor:"1,keyasint"`
	Boot     uint64 `cbor:"2,keyasint"`
	Name     string `cbor:"3,keyasint"`
	Held     uint64 `cbor:"10,keyasint,omitempty"`
}

func TestAHelloOf020AndOneOfALaterLifeAreReadByTheOtherVersion(t *testing.T) {
	t.Parallel()
	old, err := cbor.Marshal(helloOf020{Protocol: protocolVersion, Boot: 7, Name: "old", Held: 9})
	if err != nil {
		t.Fatal(err)
	}
	var got helloFrame
	if err := frames().Unmarshal(old, &got); err != nil || got.Held != 9 {
		t.Fatalf("read as %+v, %v", got, err)
	}
	if h := got.hello(); h.Lineage != 7 || h.Run != 7 || h.Level != 0 {
		t.Errorf("0.2.0 is taken for %+v", h)
	}
	later := helloOf("new", 7)
	later.Run, later.Level = 8, Level
	body, err := cbor.Marshal(later.frame(3))
	if err != nil {
		t.Fatal(err)
	}
	var read helloOf020
	if err := frames().Unmarshal(body, &read); err != nil || read != (helloOf020{Protocol: protocolVersion, Boot: 7, Name: "new", Held: 3}) {
		t.Errorf("0.2.0 reads %+v, %v", read, err)
	}
}

// 0.3.0 sends a hash too, which this version ignores.
func TestAHelloOf030IsAccepted(t *testing.T) {
	t.Parallel()
	body, err := hex.DecodeString("ac01010219b0070363616e6e0464746573740565302e332e30066562756c6c7907f5081a0bebc200091a47868c000b192b2b0c582001020000000000000000000000000000000000000000000000000000000000030d02")
	if err != nil {
		t.Fatal(err)
	}
	var got helloFrame
	if err := frames().Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	accepted := false
	if err := judge(got, func(h Hello) error { accepted = h.Name == "ann" && h.Run == 0x2b2b && h.Level == 2; return nil }); err != nil || !accepted {
		t.Errorf("read as %+v, %v", got, err)
	}
}

// A connection is reported by both sides or by neither, whatever lives they count as connected, and
// whatever their versions and lives are.
func TestBothSidesAgreeWhetherAConnectionIsNew(t *testing.T) {
	t.Parallel()
	const lineage, second, peer = 7, 8, 9
	for _, run := range []election.RunID{lineage, second} {
		for _, level := range []uint64{0, Level} {
			for _, ours := range []election.RunID{0, peer} {
				for _, theirs := range []election.RunID{0, lineage, second} {
					if level == 0 && theirs == second {
						theirs = lineage // it knows no other number
					}
					hello := helloOf("a", lineage)
					hello.Run = run
					l := &link{t: &Transport{hello: hello}, held: ours, level: level}
					claim := l.claim()
					mine := l.resumes(outcome{held: claim, theirs: helloFrame{Hello: Hello{Lineage: peer}, Held: theirs}})
					known := run
					if level == 0 {
						known = lineage
					}
					if others := theirs == known && claim == peer; mine != others {
						t.Errorf("life %v with a peer of level %d: counted %v and %v: resumed here %t, there %t", run, level, ours, theirs, mine, others)
					}
				}
			}
		}
	}
}

func TestALaterLifeIsConnectedAnew(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	for victim := range 2 {
		a, b := pair(t)
		both := []*Transport{a, b}
		other, died := both[1-victim], both[victim]
		kill(died)
		hello := helloOf("r", died.hello.Lineage)
		hello.Run = 77
		reborn := start(t, Config{Key: ids[victim].key, Listen: died.Addr(), Hello: hello})
		reborn.SetPeers([]Peer{at(other)})
		await[Lost](t, other)
		if c := await[Connected](t, other); c.Hello.Lineage != died.hello.Lineage || c.Hello.Run != 77 || c.Hello.Level != Level {
			t.Errorf("connected to %+v", c.Hello)
		}
		if c := await[Connected](t, reborn); c.Hello.Run != other.hello.Run {
			t.Errorf("connected to %+v", c.Hello)
		}
		exchange(t, reborn, other)
	}
}

// A later life does not wait for the next dial of a peer that has dialled the former life in vain.
func TestALaterLifeReportsItselfToThoseThatDial(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	introduce(t, a, b)
	kill(b)
	await[Lost](t, a)
	eventually(t, "vain dials", func() bool { return a.Stats().DialsFailed >= 4 })
	hello := helloOf("b", 2)
	hello.Run = 3
	reborn := start(t, Config{Key: ids[1].key, Listen: b.Addr(), Hello: hello})
	began := time.Now()
	reborn.SetPeers([]Peer{at(a)})
	await[Connected](t, a)
	t.Logf("connected after %s", time.Since(began))
	await[Connected](t, reborn)
	exchange(t, a, reborn)
}

func TestAPeerThatReportsItselfIsDialledAtOnce(t *testing.T) {
	t.Parallel()
	l := &link{t: &Transport{}, dials: true, abandon: func() {}, retry: time.NewTimer(time.Hour), interval: redialMax, prompt: time.Now(), dark: true, timeouts: 5}
	l.rouse()
	<-l.retry.C
	if l.interval != redialMin || l.dark || l.timeouts != 0 || !l.prompt.IsZero() {
		t.Errorf("dialled as before: %+v", l)
	}
	l.retry.Reset(time.Hour)
	l.rouse() // again, at once
	if !l.retry.Stop() {
		t.Error("a peer can have itself dialled as often as it likes")
	}
}

// 0.2.0 would count any other message as invalid.
func TestAPeerIsSentOnlyWhatItsVersionKnows(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	b.hello.Level = 0
	introduce(t, a, b)
	m := election.CallAnswer{ID: 7, Status: 200}
	if a.Send(b.self, m) || a.Stats().Dropped["older_version"] != 1 {
		t.Errorf("sent to a peer of level 0: %+v", a.Stats())
	}
	if !b.Send(a.self, m) {
		t.Errorf("not sent to a peer of this level: %+v", b.Stats())
	}
	if got := await[Message](t, a); !reflect.DeepEqual(got.Message, election.Message(m)) {
		t.Errorf("got %+v", got)
	}
}
