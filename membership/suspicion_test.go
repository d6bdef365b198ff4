package membership

import (
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// TestAnAgentThatIsLateIsPatientWithOthers shows that suspects get more time from
// an agent that gets none itself, and as much as ever from one that is on time.
func TestAnAgentThatIsLateIsPatientWithOthers(t *testing.T) {
	t.Parallel()
	c := memberlist.DefaultLANConfig()
	c.SuspicionMult, c.ProbeTimeout = 3, 200*time.Millisecond
	d := newDelegate(testNotary(t), "own#1")
	d.slow = newSuspicion(c)
	begin := time.Now()
	for _, step := range []struct {
		what      string
		late, ago time.Duration // woke so late, so long ago
		mult      int
	}{
		{"on time", 0, 0, 3},
		{"a little late", 99 * time.Millisecond, 0, 3},
		{"late", 100 * time.Millisecond, 0, 3 * patientBy},
		{"late a while ago", 100 * time.Millisecond, patientAfter - time.Second, 3 * patientBy},
		{"on time since", 0, patientAfter - time.Second, 3 * patientBy},
		{"late long ago", 100 * time.Millisecond, patientAfter + time.Second, 3},
	} {
		now := begin.Add(-step.ago)
		d.slow.woke(now.Add(-step.late), now)
		_ = d.NotifyAlive(&memberlist.Node{Name: "other#1"})
		if c.SuspicionMult != step.mult {
			t.Errorf("%s: multiplier %d, want %d", step.what, c.SuspicionMult, step.mult)
		}
	}
}
