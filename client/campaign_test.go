package client_test

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

const lease = time.Hour // so long that nothing ends by itself

func agentAndClient(t *testing.T) (*clienttest.Agent, *client.Client) {
	t.Helper()
	a := clienttest.Start(t)
	c := client.New(a.Socket())
	t.Cleanup(c.Close)
	return a, c
}

func wait[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(clienttest.Patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// campaign makes a program a candidate in payments, and elects it under term 7.
func campaign(t *testing.T, leaseFor time.Duration) (*clienttest.Agent, *clienttest.Campaign, *client.Leadership) {
	t.Helper()
	a, c := agentAndClient(t)
	led := make(chan *client.Leadership, 1)
	go func() {
		l, err := c.Campaign(t.Context(), "payments")
		if err != nil {
			t.Error(err)
		}
		led <- l
	}()
	stood := a.Stood()
	stood.Elect(7, leaseFor)
	l := wait(t, "leadership", led)
	t.Cleanup(func() { l.Close() })
	return a, stood, l
}

func lost(t *testing.T, ctx context.Context) *client.LostError {
	t.Helper()
	wait(t, "end of the leadership", ctx.Done())
	cause, ok := errors.AsType[*client.LostError](context.Cause(ctx))
	if !ok {
		t.Fatalf("it ended by %v", context.Cause(ctx))
	}
	return cause
}

func TestStandSendsTheRequestAndReadsTheLines(t *testing.T) {
	a, c := agentAndClient(t)
	priority := 7
	s, err := c.Stand(t.Context(), "payments", api.CampaignRequest{Meta: "v1", Priority: &priority})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stood := a.Stood()
	if s.ID() != stood.ID || stood.Election != "payments" || stood.Request.Meta != "v1" || *stood.Request.Priority != 7 {
		t.Errorf("stood as %s in %+v", s.ID(), stood)
	}
	until := stood.Elect(3, lease)
	if err := s.Stopped(t.Context()); err != nil || len(stood.Receipts()) > 0 {
		t.Errorf("a receipt for a term that was not read: %v, %d given", err, len(stood.Receipts()))
	}
	if event, err := s.Next(t.Context()); err != nil || event.Type != api.CampaignElected || event.Term != 3 || event.ValidUntilBoottimeNS != until {
		t.Errorf("line %+v, %v", event, err)
	}
	if err := s.Stopped(t.Context()); err != nil {
		t.Error(err)
	}
	wait(t, "receipt", stood.Receipts())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	stood.Cut()
	_, err = s.Next(t.Context())
	checkUnreachable(t, err, "closed the connection", "log")
}

func TestClosingACandidacyWithdraws(t *testing.T) {
	a, c := agentAndClient(t)
	s, err := c.Stand(t.Context(), "payments", api.CampaignRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	wait(t, "end", a.Stood().Gone())
	if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("then: %v", err)
	}
}

func TestALeadershipHasItsTokenAndItsDeadline(t *testing.T) {
	_, stood, l := campaign(t, lease)
	if l.Token() != 7 || !l.Valid() || time.Until(l.Deadline()) > lease || time.Until(l.Deadline()) < lease-time.Minute {
		t.Errorf("token %d, valid %t, until %v", l.Token(), l.Valid(), l.Deadline())
	}
	stood.Renew(9, 50*time.Millisecond) // a new roster gave the leadership a higher term
	cause := lost(t, l.Context())
	if cause.Term != 9 || l.Token() != 9 {
		t.Errorf("ended under term %d, token %d", cause.Term, l.Token())
	}
}

// The agent keeps the connection open, but sends nothing.
func TestALeadershipEndsByItsOwnClock(t *testing.T) {
	_, stood, l := campaign(t, lease)
	until := stood.Renew(7, 60*time.Millisecond)
	cause := lost(t, l.Context())
	if now := alarm.Now(); now < until || l.Valid() {
		t.Errorf("ended %v before its lease; valid: %t", time.Duration(until-now), l.Valid())
	}
	if cause.StopBy != until || !strings.Contains(cause.Reason, "did not renew") {
		t.Errorf("%+v, want stop by %d", cause, until)
	}
}

func TestARevokedLeadershipEndsAtOnceAndSaysWhy(t *testing.T) {
	_, stood, l := campaign(t, lease)
	stood.Revoke("transferred", time.Minute)
	if cause := lost(t, l.Context()); cause.Reason != "transferred" || cause.Election != "payments" || time.Duration(cause.StopBy-alarm.Now()) > time.Minute {
		t.Errorf("%+v", cause)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wait(t, "receipt", stood.Receipts())
	wait(t, "end", stood.Gone())
}

func TestALeadershipEndsWithAnAgentThatKnowsNothingOfIt(t *testing.T) {
	a, _, l := campaign(t, lease)
	a.Stop()
	a.Forget()
	a.Listen()
	if cause := lost(t, l.Context()); cause.Err == nil || !strings.Contains(cause.Reason, "connection") {
		t.Errorf("%+v", cause)
	}
	if err := l.Close(); err != nil { // no term waits for the receipt
		t.Error(err)
	}
}

func TestCampaignGoesOnThroughARestartOfTheAgent(t *testing.T) {
	a, c := agentAndClient(t)
	retries := make(chan error, 64)
	c.Retrying = func(err error) { retries <- err }
	led := make(chan error, 1)
	go func() {
		l, err := c.Campaign(t.Context(), "payments")
		if err == nil {
			err = l.Close()
		}
		led <- err
	}()
	a.Stood()
	a.Stop()
	checkUnreachable(t, wait(t, "word of it", retries), "closed the connection", "log")
	a.Listen()
	a.Stood().Elect(1, lease)
	if err := wait(t, "leadership", led); err != nil {
		t.Error(err)
	}
}

func TestCampaignReturnsARefusalThatStays(t *testing.T) {
	a, c := agentAndClient(t)
	a.Refuse(http.StatusForbidden, api.CodeForbidden, "not you")
	_, err := c.Campaign(t.Context(), "payments")
	if refused, ok := errors.AsType[*client.APIError](err); !ok || refused.Code != api.CodeForbidden {
		t.Fatalf("got %v", err)
	}
	a.Refuse(http.StatusServiceUnavailable, api.CodeBusy, "later")
	ctx, cancel := context.WithCancel(t.Context())
	c.Retrying = func(error) { cancel() }
	if _, err := c.Campaign(ctx, "payments"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestRunActsWheneverItLeadsAndEndsWithItsWork(t *testing.T) {
	a, c := agentAndClient(t)
	type acting struct {
		token uint64
		ctx   context.Context
		end   chan error
	}
	acts := make(chan acting)
	ran := make(chan error, 1)
	go func() {
		ran <- c.Run(t.Context(), "payments", func(ctx context.Context, token uint64) error {
			end := make(chan error)
			acts <- acting{token, ctx, end}
			return <-end
		})
	}()
	stood := a.Stood()
	stood.Elect(1, lease)
	first := wait(t, "call", acts)
	stood.Revoke("resigned", time.Minute)
	lost(t, first.ctx)
	select {
	case <-stood.Receipts():
		t.Error("a receipt while it acts")
	default:
	}
	first.end <- errors.New("of no interest: it had to stop")
	wait(t, "receipt", stood.Receipts())
	stood.Elect(3, lease) // the same candidacy is elected again
	second := wait(t, "second call", acts)
	if first.token != 1 || second.token != 3 {
		t.Errorf("tokens %d, %d", first.token, second.token)
	}
	done := errors.New("done")
	second.end <- done
	if err := wait(t, "end", ran); !errors.Is(err, done) {
		t.Errorf("returned %v", err)
	}
	wait(t, "receipt", stood.Receipts())
	wait(t, "withdrawal", stood.Gone())
}

// The agent may count a late receipt for the next leadership. So the program must not act under that
// leadership.
func TestRunStandsAnewAfterALeaseThatRanOut(t *testing.T) {
	a, c := agentAndClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tokens := make(chan uint64, 2)
	ran := make(chan error, 1)
	go func() {
		ran <- c.Run(ctx, "payments", func(ctx context.Context, token uint64) error {
			tokens <- token
			<-ctx.Done()
			return nil
		})
	}()
	stood := a.Stood()
	stood.Elect(1, lease)
	wait(t, "call", tokens)
	stood.Renew(1, 20*time.Millisecond)
	wait(t, "receipt", stood.Receipts())
	wait(t, "withdrawal", stood.Gone())
	a.Stood().Elect(2, lease)
	if token := wait(t, "second call", tokens); token != 2 {
		t.Errorf("token %d", token)
	}
	cancel()
	if err := wait(t, "end", ran); !errors.Is(err, context.Canceled) {
		t.Errorf("returned %v", err)
	}
}

// The agent answers a receipt after the lease's end. Meanwhile it has elected the same candidate again, and may
// have counted the receipt for that leadership.
func TestRunIsANewCandidateAfterAReceiptThatCameLate(t *testing.T) {
	a, c := agentAndClient(t)
	tokens := make(chan uint64, 2)
	go func() {
		_ = c.Run(t.Context(), "payments", func(ctx context.Context, token uint64) error {
			tokens <- token
			<-ctx.Done()
			return nil
		})
	}()
	first := a.Stood()
	release := first.HoldReceipts()
	first.Elect(1, lease)
	wait(t, "call", tokens)
	end, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	const notice = 50 * time.Millisecond
	first.Revoke("resigned", notice)
	wait(t, "receipt", first.Receipts())
	end.Set(alarm.Now() + int64(notice))
	<-end.C
	first.Elect(2, lease)
	release()
	select {
	case token := <-tokens:
		t.Fatalf("it acts with token %d, whose leadership the late receipt may have ended", token)
	case <-first.Gone():
	}
	a.Stood()
}

func TestAnElectionThatWasReadTooLateIsNotActedOn(t *testing.T) {
	a, c := agentAndClient(t)
	go func() {
		stood := a.Stood()
		stood.Elect(4, -time.Second)
		stood.Renew(4, -time.Millisecond)
		stood.Revoke("its lease is about to end", time.Minute)
		<-stood.Receipts()
		stood.Elect(6, lease)
	}()
	l, err := c.Campaign(t.Context(), "payments")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Token() != 6 {
		t.Errorf("leads under term %d", l.Token())
	}
}

// Programs import this package, so it must have few dependencies.
func TestTheClientBringsLittleAlong(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatalf("list what the package imports: %v", err)
	}
	allowed := []string{"github.com/doyen-election/doyen/api", "github.com/doyen-election/doyen/internal/base/alarm", "github.com/doyen-election/doyen/internal/base/leasepage",
		"github.com/doyen-election/doyen/client", "golang.org/x/sys/"}
	for _, path := range strings.Fields(string(out)) {
		ok := false
		for _, prefix := range allowed {
			ok = ok || strings.HasPrefix(path, prefix)
		}
		if !ok {
			t.Errorf("it depends on %s", path)
		}
	}
}
