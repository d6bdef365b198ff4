package agent

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

func TestV5EachStartIsAnotherBoot(t *testing.T) {
	seen := map[election.RunID]bool{}
	for range 100 {
		b := newRun()
		if b == 0 || seen[b] {
			t.Fatalf("boot ID %s is 0 or was drawn before", b)
		}
		seen[b] = true
	}
}

func TestAgentsThatDisagreeOnWhatMattersAreRefused(t *testing.T) {
	own := membership.Settings{Algorithm: "bully", Quorum: true, Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond}
	a := &agent{cfg: settings.Config{Name: "a", Algorithm: own.Algorithm, Quorum: own.Quorum, Heartbeat: own.Heartbeat, Lease: own.Lease}}
	for name, edit := range map[string]func(*membership.Settings){
		"algorithm": func(s *membership.Settings) { s.Algorithm = "ring" },
		"quorum":    func(s *membership.Settings) { s.Quorum = false },
		"lease":     func(s *membership.Settings) { s.Lease *= 2 },
	} {
		theirs := own
		edit(&theirs)
		if err := a.agree("b", theirs); err == nil {
			t.Errorf("another %s is let in", name)
		}
	}
	faster := own
	faster.Heartbeat /= 2
	for _, s := range []membership.Settings{own, faster} {
		if err := a.agree("b", s); err != nil {
			t.Errorf("refused: %v", err)
		}
	}
}
