package bully_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/testbed/selectiontest"
)

// square bounds the messages of one selection: each agent asks each better one, each Election has
// one reply, and the nominee sends its Coordinators.
func square(agents int) int { return agents*agents - 1 }

// TestSelectsBest shows the algorithm's theorem on a network that loses nothing.
func TestSelectsBest(t *testing.T) {
	rapid.Check(t, selectiontest.SelectsBest(newSelector, square))
}

// TestRecovers shows that after any history an agent is nominated within two waits and two answer
// timeouts, with a bounded number of messages.
func TestRecovers(t *testing.T) {
	bound := func(int) time.Duration {
		return 300*time.Millisecond + 2*selectiontest.VoteTimeout + 2*selectiontest.Heartbeat
	}
	limit := func(agents int) int { return 4*square(agents) + 80 }
	rapid.Check(t, selectiontest.Recovers(newSelector, bound, limit))
}

// TestAnything shows that no message or call, however invalid, does harm.
func TestAnything(t *testing.T) { rapid.Check(t, selectiontest.Anything(newSelector, 2)) }

func FuzzAnything(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x05\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e"))
	f.Fuzz(rapid.MakeFuzz(selectiontest.Anything(newSelector, 2)))
}

func FuzzRecovers(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		bound := func(int) time.Duration { return 2 * time.Second }
		selectiontest.Recovers(newSelector, bound, func(agents int) int { return 4*square(agents) + 80 })(t)
	}))
}
