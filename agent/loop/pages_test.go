package loop

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

func TestALeasePageSaysTheEndBeforeTheReleaseIsSent(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, nil)
	self := election.Holder{Peer: me, Lineage: 1}
	led := elector.ContestStatus{Election: "default", State: elector.Leading, Leader: self, Term: 3, ValidUntil: boottime.Now().Add(time.Hour)}
	r.status = elector.Status{Self: self, Quorum: elector.QuorumStatus{Enabled: true}, Contests: []*elector.ContestStatus{&led}}
	r.answer = func(in election.Input) election.Output {
		if _, ok := in.(election.Shutdown); !ok {
			return election.Output{WakeAt: election.Never}
		}
		over := led
		over.State = elector.Electing
		r.status.Contests = []*elector.ContestStatus{&over} // mu is held
		return election.Output{Send: []election.Envelope{{To: "b", Message: election.Release{}}}, WakeAt: election.Never}
	}
	r.loop.Pages = pages.Open(leasepage.Dir(dir+"/sock"), self.Lineage, nil)
	var page *leasepage.Reader
	asked := make(chan bool, 1)
	r.loop.Network = sendSpy{r, func() { asked <- page.Valid() }}
	r.start(t)
	defer r.cancel()
	limit := time.Now().Add(time.Minute)
	for page == nil || !page.Valid() {
		if page == nil {
			page, _ = leasepage.Open(leasepage.Path(dir+"/sock", "default"))
		}
		if time.Now().After(limit) {
			t.Fatal("the page never held the lease")
		}
	}
	close(r.loop.Shutdown)
	select {
	case held := <-asked:
		if held {
			t.Error("at the send, the page still held the lease")
		}
	case <-time.After(time.Minute):
		t.Fatal("not sent")
	}
}
