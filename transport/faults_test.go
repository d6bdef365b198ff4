package transport

import (
	"bufio"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// wired returns two connected transports whose connection runs over a cable.
func wired(t testing.TB) (a, b *Transport, line *cable) {
	t.Helper()
	ids := identities(t, 2)
	a = start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b = start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	line = newCable(t, b.Addr())
	a.SetPeers([]Peer{{ID: b.self, Addr: line.addr()}})
	b.SetPeers([]Peer{at(a)})
	await[Connected](t, a)
	await[Connected](t, b)
	return a, b, line
}

func TestARestartedPeerIsLostAndThenConnected(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	for victim := range 2 {
		a, b := pair(t)
		both := []*Transport{a, b}
		other := both[1-victim]
		addr := both[victim].Addr()
		kill(both[victim])
		reborn := start(t, Config{Key: ids[victim].key, Listen: addr, Hello: helloOf("r", 77)})
		reborn.SetPeers([]Peer{at(other)})
		await[Lost](t, other)
		if c := await[Connected](t, other); c.Hello.Lineage != 77 {
			t.Errorf("connected to boot %v", c.Hello.Lineage)
		}
		await[Connected](t, reborn)
		exchange(t, reborn, other)
	}
}

func TestAPeerThatMovedIsFoundAtItsNewAddress(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a, b := pair(t)
	kill(b)
	await[Lost](t, a)
	moved := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 78)})
	moved.SetPeers([]Peer{at(a)})
	a.SetPeers([]Peer{at(moved)})
	await[Connected](t, a)
	await[Connected](t, moved)
	exchange(t, a, moved)
}

func TestABrokenConnectionIsReplacedWithoutAWord(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	a := start(t, Config{Key: ids[0].key, Hello: helloOf("a", 1)})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	a.grace, b.grace = patienceOfTests, patienceOfTests
	introduce(t, a, b)
	for breaker := range 2 {
		links := []*link{a.link(b.self), b.link(a.self)}
		before := []*session{links[0].current(), links[1].current()}
		_ = before[breaker].wire.conn.Close()
		eventually(t, "a new connection on both sides", func() bool {
			return !slices.ContainsFunc(links, func(l *link) bool { return l.current() == nil || slices.Contains(before, l.current()) })
		})
		exchange(t, a, b) // fails on any Lost or Connected
	}
}

func TestASuspectedPeerIsLostAndComesBackWhenTheLinkHeals(t *testing.T) {
	t.Parallel()
	for suspicious := range 2 {
		t.Run([]string{"by the side that dials", "by the side that waits"}[suspicious], func(t *testing.T) {
			t.Parallel()
			a, b, line := wired(t)
			both := []*Transport{a, b}
			one, other := both[suspicious], both[1-suspicious]
			line.sever()
			suspect(t, one, other)
			one.Suspect(other.self) // nothing to lose
			if suspicious == 1 {
				// While nothing is sent, the other side notices the cut only if its agent suspects the peer.
				suspect(t, other, one)
			}
			eventually(t, "some vain dials", func() bool { return a.Stats().DialsFailed >= 3 })
			line.mend()
			await[Connected](t, one)
			if suspicious == 0 {
				await[Lost](t, other) // it hears of the cut only now
			}
			await[Connected](t, other)
			exchange(t, a, b)
		})
	}
}

func TestAYoungConnectionIsSparedFromSuspicion(t *testing.T) {
	t.Parallel()
	ids := identities(t, 2)
	slow := helloOf("a", 1)
	slow.Heartbeat = time.Minute
	a := start(t, Config{Key: ids[0].key, Hello: slow})
	b := start(t, Config{Key: ids[1].key, Hello: helloOf("b", 2)})
	introduce(t, a, b)
	a.Suspect(b.self)
	exchange(t, a, b) // fails on a Lost
}

func TestAPeerThatReadsNothingFillsItsQueueAndIsLost(t *testing.T) {
	t.Parallel()
	a, b, line := wired(t)
	line.sever()
	big := election.GenesisRefuse{Cluster: "c", Reason: 1, Detail: strings.Repeat("x", 1024)}
	eventually(t, "a full queue", func() bool {
		for range 100 {
			a.Send(b.self, big)
		}
		return a.Stats().Dropped["queue_full"] > 0
	})
	if l := await[Lost](t, a); l.Err == nil {
		t.Error("lost for no reason")
	}
}

// victimEnv, if it is in the environment, makes the test binary an agent that waits to be killed.
const victimEnv = "TRANSPORT_TEST_VICTIM"

func TestMain(m *testing.M) {
	if spec := os.Getenv(victimEnv); spec != "" {
		if err := beVictim(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func beVictim(spec string) error {
	f := strings.Fields(spec) // seed of its key, peer, peer's address
	seed, err := strconv.Atoi(f[0])
	if err != nil {
		return err
	}
	key := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), byte(seed)))
	tr, err := New(Config{Key: key, Listen: loopback, Hello: helloOf("victim", 13)})
	if err != nil {
		return err
	}
	peer, err := netip.ParseAddrPort(f[2])
	if err != nil {
		return err
	}
	tr.SetPeers([]Peer{{ID: election.PeerID(f[1]), Addr: peer}})
	fmt.Println(tr.Addr())
	for range tr.Events() { // until it is killed
	}
	return nil
}

func TestAKilledProcessIsLostAtOnce(t *testing.T) {
	ids := []identity{identityOf(t, 1), identityOf(t, 2)}
	for victim := range ids {
		survivor := start(t, Config{Key: ids[1-victim].key, Hello: helloOf("survivor", 1)})
		way := "dials"
		if survivor.self > ids[victim].id {
			way = "waits"
		}
		for range 3 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", victimEnv, victim+1, survivor.self, survivor.Addr()))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			survivor.SetPeers([]Peer{{ID: ids[victim].id, Addr: netip.MustParseAddrPort(strings.TrimSpace(line))}})
			await[Connected](t, survivor)
			killed := time.Now()
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			lost := await[Lost](t, survivor)
			took := time.Since(killed)
			_ = cmd.Wait() // killed, as it says
			t.Logf("survivor %s: lost after %s: %v", way, took, lost.Err)
			if errors.Is(lost.Err, errUnacked) || took > probeIdle { // not by its host's word
				t.Errorf("lost after %s: %v", took, lost.Err)
			}
		}
	}
}
