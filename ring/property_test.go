package ring_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/ring"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

const hopTimeout = selectiontest.Heartbeat / ring.HopsPerHeartbeat

// worst bounds the messages of one selection, as Chang and Roberts do: the i-th
// best token makes at most i hops, each with its Ack, and Elected goes round.
func worst(agents int) int { return agents*(agents+1) + agents }

// TestSelectsBest shows the algorithm's theorem on a network that loses nothing.
func TestSelectsBest(t *testing.T) {
	rapid.Check(t, selectiontest.SelectsBest(newSelector, worst))
}

// recovers is how long a selection may take after any history: an old token is given up, and one
// more goes round.
func recovers(agents int) time.Duration {
	return 300*time.Millisecond + selectiontest.VoteTimeout + time.Duration(4*agents)*hopTimeout
}

// TestRecovers shows that after any history an agent is nominated in bounded time, with a bounded number of messages.
func TestRecovers(t *testing.T) {
	limit := func(agents int) int { return 4*worst(agents) + 80 }
	rapid.Check(t, selectiontest.Recovers(newSelector, recovers, limit))
}

// TestAnything shows that no message or call, however invalid, does harm.
func TestAnything(t *testing.T) { rapid.Check(t, selectiontest.Anything(newSelector, 3)) }

func FuzzAnything(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x05\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e"))
	f.Fuzz(rapid.MakeFuzz(selectiontest.Anything(newSelector, 3)))
}

func FuzzRecovers(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(selectiontest.Recovers(newSelector, recovers, func(agents int) int { return 4*worst(agents) + 80 })))
}
