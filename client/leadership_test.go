package client

import (
	"context"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client/alarm"
)

// A leadership that is over has the token it had: one that is told later is
// another leadership's, and whoever is late must not write with it.
func TestALeadershipThatIsOverTakesNoOtherToken(t *testing.T) {
	for range 64 { // which of two things that are ready goes first is drawn
		ctx, cancel := context.WithCancel(t.Context())
		s := &Candidacy{election: "payments", events: make(chan api.CampaignEvent, 1), ended: make(chan struct{})}
		until := alarm.Now() + int64(time.Hour)
		s.events <- api.CampaignEvent{Type: api.CampaignElected, Term: 9, ValidUntilBoottimeNS: until}
		cancel()
		l, err := lead(ctx, s, api.CampaignEvent{Type: api.CampaignElected, Term: 7, ValidUntilBoottimeNS: until})
		if err != nil {
			t.Fatal(err)
		}
		l.settle()
		if l.Token() != 7 || l.Valid() {
			t.Fatalf("its token is %d, valid %t", l.Token(), l.Valid())
		}
	}
}
