package loop

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/transport"
)

// TestASuspendIsToldBeforeAnythingElse: the core must not count an input from after a suspend together with
// what it counted before. Whatever wakes the loop, the suspend is reported first.
func TestASuspendIsToldBeforeAnythingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		synctest.Wait()
		heard := transport.Message{Peer: "b", Message: election.HeartbeatAck{}}
		for how, happens := range map[string]func(){
			"a message": func() { r.hear(heard) },
			"a write": func() {
				ago := r.loop.Clock().Add(-time.Hour)
				r.loop.writingSince, r.loop.toldAt = ago, ago
				r.loop.Writer.results <- election.Persisted{}
			},
			"a program": func() { r.loop.Programs().Campaigns() },
			"a command": func() {
				_, _ = r.loop.Ask(t.Context(), func(election.RequestID) election.Input { return election.Tick{} })
			},
		} {
			r.mu.Lock()
			r.inputs = nil
			r.mu.Unlock()
			r.slept.Store(2) // the host is suspended again right after the first suspend was noticed
			go happens()
			synctest.Wait()
			r.mu.Lock()
			told := slices.Clone(r.inputs)
			r.mu.Unlock()
			if len(told) < 2 || told[0] != election.Input(election.Suspended{}) || told[1] != told[0] {
				t.Errorf("%s: the core received %#v", how, told)
			}
			if slices.Index(told[2:], election.Input(election.Suspended{})) >= 0 {
				t.Errorf("%s: told again: %#v", how, told)
			}
		}
		r.cancel()
	})
}

// timedCore is a core that remembers when it received each input.
type timedCore struct {
	*rig
	when func(now election.Instant, in election.Input)
}

func (c timedCore) Step(now election.Instant, in election.Input) election.Output {
	c.when(now, in)
	return c.rig.Step(now, in)
}

// TestTheCoreHearsOfASuspendBeforeAnyLaterInput: a suspend may begin while the loop reads the clocks. Then the core
// either receives the suspend first, or gets the input with an instant before the suspend.
func TestTheCoreHearsOfASuspendBeforeAnyLaterInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		const hour = election.Instant(3600e9)
		woken, asked, told := hour, hour, hour // the end of the last suspend: the true one, at the last comparison of the clocks, and as the core knows it
		begins := ""
		r.loop.Clock = func() election.Instant {
			now := woken
			if begins == "after the clock is read" {
				woken, begins = woken+hour, ""
			}
			return now
		}
		r.loop.Suspended = func() bool {
			seen := woken > asked
			asked = woken
			if begins == "after the clocks are compared" {
				woken, begins = woken+hour, ""
			}
			return seen
		}
		r.loop.Core = timedCore{r, func(now election.Instant, in election.Input) {
			if in == election.Input(election.Suspended{}) {
				told = asked
			}
			if now > told {
				t.Errorf("%T at %d h: told of suspends until %d h", in, now/hour, told/hour)
			}
			if now < told {
				t.Errorf("%T at %d h, before the suspend that ended at %d h", in, now/hour, told/hour)
			}
		}}
		r.start(t)
		synctest.Wait()
		for _, when := range []string{"after the clock is read", "after the clocks are compared"} {
			begins = when
			r.hear(transport.Connected{Peer: "b"})
			synctest.Wait()
			if begins != "" {
				t.Errorf("%s: nothing was looked at", when)
			}
		}
		r.cancel()
	})
}
