package socket

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/door"
)

// visitor is a connection of some origin. It sends nothing.
type visitor struct {
	net.Conn
	origin Origin
	closed bool
	heard  strings.Builder
}

func (v *visitor) Write(p []byte) (int, error)      { return v.heard.Write(p) }
func (v *visitor) Close() error                     { v.closed = true; return nil }
func (v *visitor) SetWriteDeadline(time.Time) error { return nil }

func placesFor(total, each, reserve int) *Places {
	return NewPlaces(nil, total, each, reserve, func(k *Conn) Origin { return k.Conn.(*visitor).origin })
}

func (p *Places) visit(who string) (*visitor, *Conn) {
	v := &visitor{origin: Origin{Name: who, Favoured: who == "root"}}
	return v, p.admit(v)
}

func TestConnectionsAreBounded(t *testing.T) {
	p := placesFor(3, 3, 0)
	for i := range 3 {
		if _, k := p.visit(fmt.Sprint(i)); k == nil {
			t.Fatal("no place for", i)
		} else {
			k.Turn(true)
		}
	}
	v, k := p.visit("3")
	if k != nil || !v.closed || !strings.Contains(v.heard.String(), "503") || !strings.Contains(v.heard.String(), `"code":"busy"`) {
		t.Errorf("a fourth one was let in, or not told why: %q", v.heard.String())
	}
}

func TestAConnectionFreesItsPlaceOnce(t *testing.T) {
	p := placesFor(2, 2, 0)
	_, first := p.visit("a")
	_, second := p.visit("a")
	first.Turn(true)
	second.Turn(true)
	first.Close()
	first.Close()
	first.Turn(false)
	first.excuse()
	if _, k := p.visit("a"); k == nil {
		t.Error("its place is not free")
	} else {
		k.Turn(true)
	}
	if _, k := p.visit("a"); k != nil {
		t.Error("it freed two places")
	}
	second.Close()
	if places, origins := p.taken.Taken(); places != 1 || origins != 1 {
		t.Errorf("%d connections, %d origins left, want 1 and 1", places, origins)
	}
}

func TestTheLongestIdleConnectionOfItsOriginGivesWay(t *testing.T) {
	p := placesFor(100, 3, 0)
	other, _ := p.visit("b")
	a1, k1 := p.visit("a")
	a2, k2 := p.visit("a")
	a3, _ := p.visit("a")
	k1.Turn(true)
	k2.Turn(true)
	k2.Turn(false) // k2 has been idle for less time than the third
	if _, k := p.visit("a"); k == nil || !a3.closed || a1.closed || a2.closed || other.closed {
		t.Errorf("closed: first %t, second %t, third %t, another's %t; want the third", a1.closed, a2.closed, a3.closed, other.closed)
	}
	if _, k := p.visit("a"); k == nil || !a2.closed || a1.closed || other.closed {
		t.Error("the second one did not give way, or another did")
	}
}

func TestBusyConnectionsStayUnlessAllAnswersAreBrief(t *testing.T) {
	p := placesFor(100, 2, 0)
	a1, k1 := p.visit("a")
	_, k2 := p.visit("a")
	k1.Turn(true)
	k2.Turn(true)
	if v, k := p.visit("a"); k != nil || a1.closed || !strings.Contains(v.heard.String(), "a has 2 connections") {
		t.Errorf("a third one: %v, %q", k, v.heard.String())
	}
	p.Brief = true
	if _, k := p.visit("a"); k == nil || !a1.closed {
		t.Error("where answers are brief, the one that takes longest did not give way")
	}
}

func TestTheReserveIsForFavouredOnesAlone(t *testing.T) {
	p := placesFor(10, 5, 2)
	for i := range 8 {
		if _, k := p.visit(fmt.Sprint("user ", i%2, i/4)); k == nil {
			t.Fatal("no place for", i)
		} else {
			k.Turn(true)
		}
	}
	if _, k := p.visit("another"); k != nil {
		t.Error("somebody got a place of the reserve")
	}
	for range 2 {
		if _, k := p.visit("root"); k == nil {
			t.Error("root found no place")
		}
	}
	if _, k := p.visit("another"); k != nil {
		t.Error("somebody took root's place")
	}
	if _, k := p.visit("root"); k == nil {
		t.Error("root's own idle connection does not give way to root")
	}
}

func TestACandidacyIsNotCountedAsAConnection(t *testing.T) {
	p := placesFor(10, 2, 0)
	for range 4 {
		_, k := p.visit("a")
		if k == nil {
			t.Fatal("a candidacy takes a place of its user's share")
		}
		k.Turn(true)
		k.excuse()
		k.excuse()
	}
	if places, _ := p.taken.Taken(); places != 4 || p.taken.Of("a") != 0 {
		t.Errorf("%d connections, %d of them counted; want 4 and 0", places, p.taken.Of("a"))
	}
}

func TestANetworkIsOneOrigin(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[fe80::1%lo]:80": "fe80::/64",
	} {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := network(a); got != want {
			t.Errorf("%s counts for %s, want %s", addr, got, want)
		}
	}
}

// A crowd of 512 readers at 16 addresses once took a load balancer's place again and again, before its answer.
func TestACrowdGivesWayBeforeThoseWhoHaveFewConnections(t *testing.T) {
	p := placesFor(6, 4, 0)
	few, _ := p.visit("balancer")
	other, _ := p.visit("other")
	for range 100 {
		for _, who := range []string{"a", "b", "c"} {
			p.visit(who)
		}
	}
	if few.closed || other.closed {
		t.Errorf("closed: the balancer's %t, another's %t", few.closed, other.closed)
	}
	if late, k := p.visit("late"); k == nil || late.closed || few.closed {
		t.Error("one more that has none found no place")
	}
}

// The origin with most connections may have only busy ones. Then an idle connection of another origin makes room.
func TestIdleConnectionsGiveWayAlsoIfTheBusyOneHasMore(t *testing.T) {
	p := placesFor(6, 4, 0)
	for range 3 {
		_, k := p.visit("busy")
		k.Turn(true)
	}
	first, _ := p.visit("idle")
	second, _ := p.visit("idle")
	few, _ := p.visit("few")
	if _, k := p.visit("busy"); k != nil || first.closed || second.closed || few.closed {
		t.Error("one with more got the place of one with fewer")
	}
	if _, k := p.visit("new"); k == nil || !first.closed || second.closed || few.closed {
		t.Error("one that has none was kept out by idle connections, or the wrong one gave way")
	}
}

// Even a connection that is refused costs work, so a crowd is closed without an answer.
func TestAnOriginThatConnectsTooOftenIsClosedAtOnce(t *testing.T) {
	p := placesFor(100, 100, 0)
	p.Opened = door.NewPace[string](0, 3)
	for i := range 5 {
		if v, k := p.visit("a"); (k != nil) != (i < 3) || v.closed != (i >= 3) || v.heard.Len() > 0 {
			t.Errorf("connection %d: closed %t, answered %q", i+1, v.closed, v.heard.String())
		}
	}
	if _, k := p.visit("b"); k == nil {
		t.Error("another was kept out")
	}
}
