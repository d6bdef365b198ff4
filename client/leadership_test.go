package client

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// The token of a leadership that has ended does not change. A later token belongs to another leadership, and a
// program that is late must not write with it.
func TestALeadershipThatIsOverTakesNoOtherToken(t *testing.T) {
	for range 64 { // select draws which of two ready cases goes first
		ctx, cancel := context.WithCancel(t.Context())
		read := &lines{events: make(chan api.CampaignEvent, 1), ended: make(chan struct{})}
		s := &Candidacy{life: t.Context(), election: "payments", lines: read}
		until := alarm.Now() + int64(time.Hour)
		read.events <- api.CampaignEvent{Type: api.CampaignElected, Term: 9, ValidUntilBoottimeNS: until}
		cancel()
		l, err := lead(ctx, s, api.CampaignEvent{Type: api.CampaignElected, Term: 7, ValidUntilBoottimeNS: until})
		if err != nil {
			t.Fatal(err)
		}
		l.awaitEnd()
		if l.Token() != 7 || l.Valid() {
			t.Fatalf("its token is %d, valid %t", l.Token(), l.Valid())
		}
	}
}

// A program that was frozen may read a renewal after the lease that it knew has ended. The renewal does not count,
// since another program may have been elected meanwhile.
func TestARenewalThatIsReadAfterTheDeadlineIsNotTaken(t *testing.T) {
	for range 64 { // select draws which of two ready cases goes first
		now := alarm.Now()
		read := &lines{events: make(chan api.CampaignEvent, 1), ended: make(chan struct{}), hangUp: func() {}, err: io.EOF}
		s := &Candidacy{life: t.Context(), client: New("/nonexistent"), election: "payments", lines: read}
		read.events <- api.CampaignEvent{Type: api.CampaignRenewed, Term: 8, ValidUntilBoottimeNS: now + int64(time.Hour)}
		close(read.ended)
		l, err := lead(t.Context(), s, api.CampaignEvent{Type: api.CampaignElected, Term: 7, ValidUntilBoottimeNS: now - 1})
		if err != nil {
			t.Fatal(err)
		}
		l.awaitEnd()
		if l.Token() != 7 {
			t.Fatalf("it leads on with token %d", l.Token())
		}
	}
}
