package keeper

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/alarm"
	"github.com/doyen-election/doyen/internal/leasepage"
	"github.com/doyen-election/doyen/internal/obituary"
)

// dead returns what an agent left that led with these actors until then, and the voter that
// waits for its obituary.
func dead(t *testing.T, a record.Actors, until int64) (known Known, secret [32]byte, voter *net.UDPConn) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "doyen") // a record is in memory
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	known = Known{Record: filepath.Join(dir, "a.record"), Pages: filepath.Join(dir, "pages"), Peer: "peer-a"}
	r, _, err := record.Open(record.Config{Path: known.Record, Peer: "peer-a", Run: 7, Born: 1, Lease: time.Minute})
	if r == nil || err != nil {
		t.Fatal(err)
	}
	voter, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { voter.Close() })
	at := voter.LocalAddr().(*net.UDPAddr).AddrPort()
	row := election.Authority{Election: "default", Highest: 3, Term: 3, Until: election.Instant(until), Priority: 100}
	for _, err := range []error{
		r.Write(&election.LifeRecord{Rows: []election.Authority{row}}), r.WriteActors("default", a),
		r.SetVoters([]record.Voter{{Peer: "peer-b", Gossip: at, Stream: at}}),
		os.Mkdir(known.Pages, 0o750),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	secret = r.Secret()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return known, secret, voter
}

// The obituary is revealed once nobody acts, when pages and record have ended.
func TestAnObituaryIsRevealedOnceNobodyActs(t *testing.T) {
	ranHook := record.Actors{Hook: record.Hook{Term: 3, Finished: true}}
	for what, c := range map[string]struct {
		acts  record.Actors
		hook  string
		waits bool // for the deadline
	}{
		"the host led":                        {acts: record.Actors{Program: record.Program{Told: 3}}},
		"a program that stopped":              {acts: record.Actors{Program: record.Program{Campaign: "k", Told: 3, Stopped: 3}}},
		"a program that may act":              {acts: record.Actors{Program: record.Program{Campaign: "k", Told: 3, PID: 1}}, waits: true},
		"what a hook has set up":              {acts: ranHook, hook: `test "$DOYEN_EVENT $DOYEN_ELECTION $DOYEN_TERM" = "none default 3" && grep -q '"type":"no_leader"'`},
		"a hook that fails":                   {acts: ranHook, hook: "exit 1", waits: true},
		"a hook that hangs":                   {acts: ranHook, hook: "sleep 1", waits: true},
		"a hook that is not known any more":   {acts: ranHook, waits: true},
		"a hook that ran when its agent died": {acts: record.Actors{Hook: record.Hook{Term: 3}}, hook: "true", waits: true},
		"a program besides a hook":            {acts: record.Actors{Hook: ranHook.Hook, Program: record.Program{Campaign: "k", Told: 3, PID: 1}}, hook: "true", waits: true},
		"a program that stopped another term": {acts: record.Actors{Program: record.Program{Campaign: "k", Told: 3, Stopped: 2}}, waits: true},
	} {
		t.Run(what, func(t *testing.T) {
			until := alarm.Now() + int64(40*time.Second)
			if c.waits {
				until = alarm.Now() + int64(50*time.Millisecond)
			}
			known, secret, voter := dead(t, c.acts, until)
			known.Hooks = map[election.Name]string{election.Default: c.hook}
			page, err := leasepage.Create(known.Pages, "default", 7)
			if err != nil {
				t.Fatal(err)
			}
			if err := page.Set(3, until); err != nil {
				t.Fatal(err)
			}
			buried := make(chan error, 1)
			go func() {
				err := bury(known, slog.New(slog.DiscardHandler))
				if err != nil {
					voter.Close()
				}
				buried <- err
			}()
			b := make([]byte, obituary.MaxSize)
			n, err := voter.Read(b)
			early := alarm.Now() <= until
			if err := errors.Join(err, <-buried); err != nil {
				t.Fatal(err)
			}
			notice, err := obituary.Decode(b[:n])
			if err != nil || notice.Secret != secret || notice.Holder != (election.Holder{Peer: "peer-a", Lineage: 7}) {
				t.Errorf("revealed %+v, %v", notice, err)
			}
			if early == c.waits {
				t.Errorf("revealed before the deadline: %t", early)
			}
			if _, _, err := record.Inherit(record.Config{Path: known.Record, Peer: "peer-a"}); err == nil {
				t.Error("there still is a record")
			}
			if left, _ := os.ReadDir(known.Pages); len(left) > 0 {
				t.Errorf("pages %v are left", left)
			}
		})
	}
}

// Without a deadline nothing is revealed, and the record stays for a next life.
func TestWhatHasNoDeadlineIsNotBuried(t *testing.T) {
	known, _, _ := dead(t, record.Actors{Hook: record.Hook{Term: 3, Finished: true}}, never)
	if err := bury(known, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it was buried")
	}
	r, past, err := record.Inherit(record.Config{Path: known.Record, Peer: "peer-a"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if past.Actors["default"].Hook.Finished {
		t.Error("a life that leads on would not run the hook again, which the keeper may have run with none")
	}
}

// An agent that ended its lineage itself leaves nothing to bury. Where no record could be kept,
// the hooks are run all the same.
func TestWithoutARecordOnlyTheHooksAreRun(t *testing.T) {
	dir := t.TempDir()
	known := Known{Record: filepath.Join(dir, "a.record"), Peer: "peer-a", Hooks: map[election.Name]string{election.Default: "touch " + dir + "/none"}}
	if err := bury(known, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/none"); err == nil {
		t.Error("the hook was run though the life had ended its lineage")
	}
	known.Record = ""
	if err := bury(known, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/none"); err != nil {
		t.Errorf("the hook was not run: %v", err)
	}
}

func TestWhatALifeTellsComesBack(t *testing.T) {
	k := Known{Record: "/r", Pages: "/p", Peer: "12D3", Hooks: map[election.Name]string{election.Default: "a b", everyOther: "c", "pay": "d\ne", "x": ""}}
	var p page
	p.tell(k.text())
	if got := knownFrom(p.told()); !reflect.DeepEqual(got, k) {
		t.Errorf("%+v came back as %+v", k, got)
	}
	if k.hook("x") != "" || k.hook("other") != "c" || (Known{Hooks: map[election.Name]string{everyOther: "c"}}).hook(election.Default) != "" {
		t.Error("an election has another one's command")
	}
	k.Hooks["y"] = strings.Repeat("x", maxText)
	p.tell(k.text())
	if got := knownFrom(p.told()); got.Peer != k.Peer || len(got.Hooks) != 0 {
		t.Errorf("hooks without room: %+v", got)
	}
	if got := knownFrom("torn"); got.Peer != "" {
		t.Errorf("%+v of nothing", got)
	}
}
