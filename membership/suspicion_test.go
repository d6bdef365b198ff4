package membership

import (
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// TestAnAgentThatIsLateIsPatientWithOthers shows that an agent that runs late gives suspects more time,
// and that an agent that is on time gives them the usual time.
func TestAnAgentThatIsLateIsPatientWithOthers(t *testing.T) {
	c := memberlist.DefaultLANConfig()
	c.SuspicionMult, c.ProbeTimeout = 3, 200*time.Millisecond
	d := newDelegate(testNotary(t), "own#1")
	begin := time.Now()
	d.slow = newSuspicion(c, begin)
	for _, step := range []struct {
		what      string
		late, ago time.Duration // by how much it woke too late, and how long ago that was
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

// TestAnAgentThatBeginsInACrowdIsPatient shows that an agent that knows many members right after its
// start gives suspects more time. It can't see yet that it is late. An agent of a small cluster, or one
// that has run for long, gives no more time.
func TestAnAgentThatBeginsInACrowdIsPatient(t *testing.T) {
	for _, c := range []struct {
		members int64
		age     time.Duration
		patient bool
	}{{crowd - 1, 0, false}, {crowd, 0, true}, {crowd, patientAfter, false}} {
		list := memberlist.DefaultLANConfig()
		list.SuspicionMult = 3
		d := newDelegate(testNotary(t), "own#1")
		d.slow = newSuspicion(list, time.Now().Add(-c.age))
		d.live.Store(c.members)
		_ = d.NotifyAlive(&memberlist.Node{Name: "other#1"})
		if patient := list.SuspicionMult >= 3*patientBy; patient != c.patient {
			t.Errorf("%d members at the age of %s: patient %t", c.members, c.age, patient)
		}
	}
}

// TestInACrowdASuspicionIsGossipedOnce shows that a patient agent of a crowd asks for more
// confirmations than there can be. Memberlist then expects none, and gossips none.
func TestInACrowdASuspicionIsGossipedOnce(t *testing.T) {
	t.Parallel()
	list := memberlist.DefaultLANConfig()
	list.SuspicionMult = 3
	d := newDelegate(testNotary(t), "own#1")
	d.slow = newSuspicion(list, time.Now())
	d.live.Store(100)
	_ = d.NotifyAlive(&memberlist.Node{Name: "other#1"})
	if confirmations := list.SuspicionMult - 2; confirmations <= 100-2 {
		t.Errorf("%d confirmations are asked of 98", confirmations)
	}
}
