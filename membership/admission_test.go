package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/door"
)

const maxStrangers = door.Unproven - door.ForMembers

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

func TestASourceHasFewPlacesAndStrangersNotAll(t *testing.T) {
	a := newAdmission()
	for i := range maxFromSource + 1 {
		if _, err := a.enter(address(1), false); (err != nil) != (i == maxFromSource) {
			t.Errorf("stream %d of one address: %v", i+1, err)
		}
	}
	// Every address of an IPv6 network of 64 bits is one source.
	v6 := netip.MustParseAddr("2001:db8::1")
	for i := range maxFromSource + 1 {
		if _, err := a.enter(v6, false); (err != nil) != (i == maxFromSource) {
			t.Errorf("stream %d of one network: %v", i+1, err)
		}
		v6 = v6.Next()
	}
	taken := 2 * maxFromSource
	for i := 2; ; i++ {
		if _, err := a.enter(address(i), false); err != nil {
			break
		}
		taken++
	}
	if taken != maxStrangers {
		t.Errorf("strangers got %d places, want %d", taken, maxStrangers)
	}
	for i := range door.ForMembers + 1 {
		if _, err := a.enter(address(1000+i), true); (err != nil) != (i == door.ForMembers) {
			t.Errorf("member %d: %v", i+1, err)
		}
	}
}

func TestManyThatStartAtOnceAreAllServed(t *testing.T) {
	a := newAdmission()
	for i := range maxStrangers { // each from a host of its own, none known yet
		p, err := a.enter(address(i), false)
		if err != nil {
			t.Fatalf("agent %d: %v", i, err)
		}
		if err := errors.Join(p.announce(2000), p.grow(4<<10)); err != nil {
			t.Fatalf("agent %d: %v", i, err)
		}
	}
}

func TestBytesOfStrangersAreBoundedTogether(t *testing.T) {
	a := newAdmission()
	a.members.Store(3)
	var strangers, members []*place
	fill := func(known bool, from int) (all []*place, sum int) {
		for i := range door.Unproven {
			p, err := a.enter(address(from+i), known)
			if err != nil {
				break
			}
			all = append(all, p)
			for p.announce(p.unread+4<<10) == nil && p.grow(4<<10) == nil {
				sum += 4 << 10
			}
		}
		return all, sum
	}
	strangers, sum := fill(false, 0)
	if sum > (maxUnread-unreadForMembers) || sum < (maxUnread-unreadForMembers)*9/10 {
		t.Errorf("strangers got %d bytes of %d", sum, (maxUnread - unreadForMembers))
	}
	members, more := fill(true, 1000)
	if sum+more > maxUnread || more == 0 {
		t.Errorf("members got %d bytes beside %d of strangers", more, sum)
	}
	for _, p := range append(strangers, members...) {
		p.leave(false)
	}
	streams, sources := a.streams.Taken()
	bytes, _ := a.bytes.Taken()
	long, _ := a.long.Taken()
	if streams != 0 || sources != 0 || bytes != 0 || long != 0 {
		t.Errorf("left over: %d streams of %d sources, %d of them long, %d bytes", streams, sources, long, bytes)
	}
}

func TestOnlyAFewStreamsMayBeLong(t *testing.T) {
	a := newAdmission()
	a.members.Store(3)
	usual := streamBase + 3*streamPerMember
	long := func(i int, known bool) error {
		p, err := a.enter(address(i), known)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.announce(usual); err != nil {
			t.Errorf("the usual %d bytes: %v", usual, err)
		}
		if err := p.announce(maxStream + 1); !errors.Is(err, errLong) {
			t.Errorf("more than anybody needs: %v", err)
		}
		err = p.announce(usual + 1)
		if again := p.announce(maxStream + 1); !errors.Is(again, errLong) {
			t.Errorf("more than anybody needs, after the first bytes: %v", again)
		}
		return err
	}
	for i, want := range []bool{true, true, false} {
		if err := long(i, false); (err == nil) != want {
			t.Errorf("long stream %d of strangers: %v", i+1, err)
		}
	}
	if err := long(10, true); err != nil {
		t.Errorf("long stream of a member: %v", err)
	}
	if err := long(11, true); err == nil {
		t.Error("one more long stream is let in")
	}
}

func TestASourceRestsAfterBadStreams(t *testing.T) {
	a := newAdmission()
	var later []func()
	a.after = func(d time.Duration, f func()) {
		if d != badRest {
			t.Errorf("rests for %s", d)
		}
		later = append(later, f)
	}
	for i := range maxFromSource {
		p, err := a.enter(address(1), false)
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		p.leave(true)
	}
	if _, err := a.enter(address(1), false); err == nil {
		t.Error("it is served on")
	}
	if _, err := a.enter(address(2), false); err != nil {
		t.Errorf("another one is not: %v", err)
	}
	for _, f := range later {
		f()
	}
	if _, err := a.enter(address(1), false); err != nil {
		t.Errorf("after its rest: %v", err)
	}
}

func TestRestsAreBounded(t *testing.T) {
	a := newAdmission()
	a.after = func(time.Duration, func()) {}
	for i := range 2 * maxBad {
		p, err := a.enter(netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::1", i)), false)
		if err != nil {
			t.Fatal(err)
		}
		p.leave(true)
	}
	if _, sources := a.streams.Taken(); sources > maxBad {
		t.Errorf("%d sources are remembered", sources)
	}
}
