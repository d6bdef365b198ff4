package loop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

const pay election.Name = "payments"

// payments returns a rig with the election pay. Its core answers PeerLost by calling tick.
func payments(t *testing.T, tick func(*rig) election.Output) *rig {
	t.Helper()
	var r *rig
	r = newRig(t, func(in election.Input) election.Output {
		out := election.Output{WakeAt: election.Never}
		switch in.(type) {
		case election.Campaign:
			r.status.Contests = []*elector.ContestStatus{{Election: pay}} // mu is held
		case election.PeerLost: // sent by happen
			out = tick(r)
			out.WakeAt = election.Never
		}
		return out
	})
	return r.start(t)
}

func (r *rig) happen() {
	_ = r.loop.call(context.Background(), func(election.Instant) { r.loop.step(election.PeerLost{}) })
	synctest.Wait()
}

func kinds(k *actors.Candidacy) string {
	lines, _ := k.Take()
	var all []string
	for _, l := range lines {
		all = append(all, l.Type)
	}
	return strings.Join(all, " ")
}

func TestAProgramIsToldWhatTheElectorDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := election.Output{}
		r := payments(t, func(*rig) election.Output { return out })
		k, err := r.loop.Programs().Stand(actors.Request{Election: pay})
		if err != nil {
			t.Fatal(err)
		}
		leads := func(until election.Instant) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.status.Contests = []*elector.ContestStatus{{Election: pay, State: elector.Leading, Leader: r.loop.Self, Term: 4, ValidUntil: until}}
		}
		leads(election.Instant(lease))
		out.Announce = []election.Announcement{{Election: pay, Event: election.Leading, Leader: r.loop.Self, Term: 4}}
		r.happen()
		if got := kinds(k); got != "candidate elected" {
			t.Errorf("told %q", got)
		}
		out = election.Output{}
		leads(election.Instant(2 * lease))
		r.happen()
		if got := kinds(k); got != "renewed" {
			t.Errorf("told %q", got)
		}
		leads(0)
		out.Withdraw = []election.Withdrawal{{Election: pay, Term: 4, StopBy: election.Instant(2 * lease), Reason: election.ReasonResigned}}
		r.happen()
		if got := kinds(k); got != "revoked" || r.got(election.Stopped{Election: pay, Term: 4}) {
			t.Errorf("told %q", got)
		}
		if err := r.loop.Programs().Receipt(k.ID(), pay, 4, "", func(uint32) bool { return true }); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !r.got(election.Stopped{Election: pay, Term: 4}) {
			t.Error("the elector has no receipt")
		}
		r.cancel()
		synctest.Wait()
		if lines, more := k.Take(); more || len(lines) != 1 || lines[0].Reason != whyAgentStops {
			t.Errorf("in the end it was told %+v", lines)
		}
		if _, err := r.loop.Programs().Stand(actors.Request{Election: pay}); err == nil {
			t.Error("an agent that has stopped takes candidacies")
		}
	})
}

// The election is won and given up in one step, so the announcement comes after the withdrawal.
func TestALeadershipThatIsOverIsToldToNoProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := payments(t, func(r *rig) election.Output {
			return election.Output{
				Withdraw: []election.Withdrawal{{Election: pay, Term: 4, StopBy: election.Instant(lease)}},
				Announce: []election.Announcement{{Election: pay, Event: election.Leading, Leader: r.loop.Self, Term: 4}},
			}
		})
		k, err := r.loop.Programs().Stand(actors.Request{Election: pay})
		if err != nil {
			t.Fatal(err)
		}
		r.happen()
		if got := kinds(k); got != "candidate" || !r.got(election.Stopped{Election: pay, Term: 4}) {
			t.Errorf("told %q", got)
		}
		r.cancel()
	})
}

func TestACandidacyThatTheElectorHasNoRoomForIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t) // the core knows no election
		_, err := r.loop.Programs().Stand(actors.Request{Election: pay})
		if refused, ok := errors.AsType[*api.ErrorDetail](err); !ok || refused.Code != api.CodeBusy {
			t.Errorf("got %v", err)
		}
		if list := r.loop.Programs().Campaigns(); len(list) != 0 {
			t.Errorf("it stands: %+v", list)
		}
		r.cancel()
	})
}

func TestACandidacyThatEndsIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := payments(t, func(*rig) election.Output { return election.Output{} })
		k, err := r.loop.Programs().Stand(actors.Request{Election: pay, Priority: new(7)})
		if err != nil || !r.got(election.Campaign{Election: pay, Priority: 7}) {
			t.Fatal(err)
		}
		if _, waits := r.loop.Programs().End(k.ID()); waits || !r.got(election.Withdraw{Election: pay}) {
			t.Errorf("waits %t", waits)
		}
		r.cancel()
	})
}
