package client_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

func TestALeadershipGoesOnWithItsAgentsNextLife(t *testing.T) {
	a, _, l := campaign(t, lease)
	for term := uint64(8); term < 11; term++ {
		a.Stop()
		if !l.Valid() || l.Token() != term-1 {
			t.Fatalf("without its agent it is valid: %t, token %d", l.Valid(), l.Token())
		}
		a.Listen()
		again := a.Resumed()
		if again.Resumed.Term != term-1 || again.Request.Meta != again.Resumed.Meta {
			t.Errorf("resumed by %+v", again.Resumed)
		}
		again.Renew(term, 2*lease)
		for limit := time.Now().Add(clienttest.Patience); l.Token() != term || time.Until(l.Deadline()) < lease+time.Minute; runtime.Gosched() {
			if err := l.Context().Err(); err != nil || time.Now().After(limit) {
				t.Fatalf("token %d, %v are left: %v", l.Token(), time.Until(l.Deadline()), context.Cause(l.Context()))
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// The agent does not come back.
func TestALeadershipWithoutItsAgentEndsByItsOwnClock(t *testing.T) {
	t.Parallel()
	a, stood, l := campaign(t, lease)
	until := stood.Renew(7, 2*time.Second)       // the agent goes away before that
	for time.Until(l.Deadline()) > time.Minute { // until the program has read the renewal
		runtime.Gosched()
	}
	a.Stop()
	cause := lost(t, l.Context())
	if now := alarm.Now(); now < until || cause.Err == nil || cause.StopBy > until {
		t.Errorf("ended %v before its lease: %+v", time.Duration(until-now), cause)
	}
	if err := l.Close(); err == nil {
		t.Error("the receipt went to nobody, and that is no error")
	}
}

func TestAnAgentThatStepsDownEndsALeadershipThatResumes(t *testing.T) {
	a, _, l := campaign(t, lease)
	a.Stop()
	a.Listen()
	a.Resumed().Revoke("resigned", time.Minute)
	if cause := lost(t, l.Context()); cause.Reason != "resigned" {
		t.Errorf("%+v", cause)
	}
}

// Without the receipt, the successor would wait for the end of the lease.
func TestAReceiptIsGivenToTheAgentsNextLife(t *testing.T) {
	a, stood, l := campaign(t, lease)
	a.Stop()
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	wait(t, "end of the leadership", l.Context().Done())
	a.Listen()
	if err := wait(t, "close", closed); err != nil {
		t.Error(err)
	}
	if len(stood.Receipts()) == 0 {
		t.Error("the next life got no receipt")
	}
}

// Without a quorum, other agents lead as soon as this one is gone.
func TestALeadershipWithoutAQuorumEndsWithItsAgent(t *testing.T) {
	a, stood, l := campaign(t, lease)
	stood.Say(api.CampaignEvent{Type: api.CampaignRenewed, Term: 8, ValidUntilBoottimeNS: alarm.Now() + int64(lease), Authority: api.AuthorityView})
	for l.Token() != 8 {
		runtime.Gosched()
	}
	a.Stop()
	lost(t, l.Context())
}
