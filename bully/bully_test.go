package bully_test

import (
	"testing"

	"github.com/doyen-election/doyen/bully"
	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/selectiontest"
)

func newSelector(self election.PeerID) contest.Selection {
	return bully.New(selectiontest.Election, self, selectiontest.Heartbeat, 0)
}

// TestTraces compares what happens with the golden traces in testdata. With -rewrite it replaces
// the traces.
func TestTraces(t *testing.T) { selectiontest.RunScripts(t, "testdata", newSelector) }
