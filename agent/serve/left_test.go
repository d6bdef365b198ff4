package serve

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/election"
)

// A program that can't read CLOCK_BOOTTIME can use the time that the line says is left.
func TestALineOfACampaignSaysWhatWasLeftWhenItWasWritten(t *testing.T) {
	var now atomic.Int64
	h := hosts(t, func(s *Server) { s.Clock = func() election.Instant { return election.Instant(now.Load()) } })
	_, lines, first := h.stand(t)
	if first.ValidForMS != 0 {
		t.Errorf("a line without a deadline: %+v", first)
	}
	now.Store(int64(1500 * time.Millisecond)) // the loop learned of the lease at 0, and the line is written at this instant
	h.with(func(r *actors.Registry) {
		r.Lead(0, "payments", 3, election.Instant(2*time.Second+999*time.Microsecond), nil, nil)
	})
	if e := line(t, lines); e.Type != "elected" || e.ValidForMS != 500 {
		t.Errorf("%+v, want 500 ms, rounded down", e)
	}
	now.Store(int64(3 * time.Second))
	h.with(func(r *actors.Registry) { r.Prolong("payments", 3, election.Instant(2500*time.Millisecond)) })
	if e := line(t, lines); e.Type != "renewed" || e.ValidForMS != 0 {
		t.Errorf("%+v, want nothing left of a deadline that has passed", e)
	}
	h.with(func(r *actors.Registry) {
		r.Withdraw(election.Withdrawal{Election: "payments", Term: 3, StopBy: election.Instant(3250 * time.Millisecond), Reason: election.ReasonResigned}, nil)
	})
	if e := line(t, lines); e.Type != "revoked" || e.ValidForMS != 250 {
		t.Errorf("%+v, want 250 ms", e)
	}
}
