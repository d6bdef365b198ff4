package elector

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// TestTheConfigurationMustFitTheAlgorithms shows that bully and ring never get an identity or
// heartbeat that they can't use.
func TestTheConfigurationMustFitTheAlgorithms(t *testing.T) {
	good := election.Config{Self: election.Holder{Peer: "a", Lineage: 1}, Algorithm: election.Ring, Timing: testTiming}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*election.Config){
		"no peer ID":         func(c *election.Config) { c.Self.Peer = "" },
		"no algorithm":       func(c *election.Config) { c.Algorithm = "" },
		"no heartbeat":       func(c *election.Config) { c.Timing.Heartbeat = 0 },
		"negative heartbeat": func(c *election.Config) { c.Timing.Heartbeat = -time.Second },
		"no time for hops":   func(c *election.Config) { c.Timing.Heartbeat = 3 },
		"no lease":           func(c *election.Config) { c.Timing.Lease = 0 },
		"a short lease":      func(c *election.Config) { c.Timing.Lease = 3 * c.Timing.Heartbeat },
	} {
		c := good
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
