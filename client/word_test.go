package client_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// writes starts a write, and waits until the agent has it.
func writes(t *testing.T, ctx context.Context, l *client.Leadership, from <-chan api.WordRequest, text string) (api.WordRequest, <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Write(ctx, text) }()
	return wait(t, "write", from), done
}

func refusedWith(t *testing.T, err error, code string) {
	t.Helper()
	if refused, ok := errors.AsType[*client.APIError](err); !ok || refused.Code != code || !strings.HasPrefix(err.Error(), "write the word of payments: ") {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestAWriteReplacesTheWordThatTheLeadershipKnows(t *testing.T) {
	a, _, l := campaign(t, lease)
	if w := l.Word(); w != (api.Word{}) {
		t.Errorf("without a word it has %+v", w)
	}
	for _, text := range []string{"one", "two", ""} {
		before := l.Word().WordID
		q, done := writes(t, t.Context(), l, a.Writes(), text)
		if err := wait(t, "answer", done); err != nil {
			t.Fatal(err)
		}
		if want := (api.WordRequest{Term: 7, If: before, Text: text}); q != want {
			t.Errorf("asked for %+v, want %+v", q, want)
		}
		if got := l.Word(); got != *a.Word("payments") || got.Text != text {
			t.Errorf("then it knows %+v, and the agent %+v", got, a.Word("payments"))
		}
	}
}

// The word may have been written by a later leader, or by another process of the program's user.
func TestAWriteThatFindsAnotherWordChangesNothingAndShowsIt(t *testing.T) {
	a, _, l := campaign(t, lease)
	a.SetWord("payments", 7, "theirs")
	refusedWith(t, l.Write(t.Context(), "mine"), api.CodeWordChanged)
	if w := l.Word(); w.Text != "theirs" || a.Word("payments").Text != "theirs" {
		t.Errorf("it knows %+v of %+v", w, a.Word("payments"))
	}
	a.SetWord("payments", 7, "mine")
	refusedWith(t, l.Write(t.Context(), "mine"), api.CodeWordChanged) // the text is the same, but another process wrote it
	if err := l.Write(t.Context(), "mine now"); err != nil {
		t.Error(err)
	}
}

func TestALeadershipBeginsWithTheWordOfTheFormerOne(t *testing.T) {
	a, c := agentAndClient(t)
	a.SetWord("payments", 3, "paid")
	led := make(chan *client.Leadership, 1)
	go func() {
		l, err := c.Campaign(t.Context(), "payments")
		if err != nil {
			t.Error(err)
		}
		led <- l
	}()
	a.Stood().Elect(7, lease)
	l := wait(t, "leadership", led)
	defer l.Close()
	if w := l.Word(); w != *a.Word("payments") {
		t.Errorf("it knows %+v", w)
	}
	read, err := c.Word(t.Context(), "payments")
	if err != nil || read.Word == nil || *read.Word != *a.Word("payments") || read.Authority != api.AuthorityLease {
		t.Errorf("read %+v, %v", read, err)
	}
}

// The write was carried out and its answer is lost. The repeated write finds its own text.
func TestAWriteWhoseAnswerIsLostSucceedsOnce(t *testing.T) {
	for _, lost := range []int{1, 2} {
		a, _, l := campaign(t, lease)
		a.LoseAnswers(lost)
		first, done := writes(t, t.Context(), l, a.Writes(), "mine")
		second := wait(t, "repetition", a.Writes())
		if err := wait(t, "answer", done); err != nil || first != second {
			t.Errorf("%v after %+v and %+v", err, first, second)
		}
		if w := l.Word(); w != *a.Word("payments") || w.Text != "mine" || w.Seq != 1 {
			t.Errorf("it knows %+v of %+v", w, a.Word("payments"))
		}
	}
}

// The agent dies before it carries out the write. Its next process run does.
func TestAWriteIsRepeatedToTheAgentsNextLife(t *testing.T) {
	a, _, l := campaign(t, lease)
	release := a.HoldWrites()
	_, done := writes(t, t.Context(), l, a.Writes(), "mine")
	a.Stop()
	release()
	a.Listen()
	a.Resumed().Renew(9, lease)
	if err := wait(t, "answer", done); err != nil {
		refusedWith(t, err, api.CodeNotLeader) // the write was repeated before the program read its new term
		for l.Token() != 9 {
			runtime.Gosched()
		}
		if err := l.Write(t.Context(), "mine"); err != nil {
			t.Fatal(err)
		}
	}
	if w := l.Word(); w.Text != "mine" || w != *a.Word("payments") {
		t.Errorf("it knows %+v of %+v", w, a.Word("payments"))
	}
}

func TestARefusedWriteIsNotRepeated(t *testing.T) {
	a, _, l := campaign(t, lease)
	for code, status := range map[string]int{api.CodeNotConfirmed: 409, api.CodeBusy: 503, api.CodeTooLarge: 413, api.CodeNotLeader: 409} {
		a.RefuseWrites(status, code, "for a reason")
		q, done := writes(t, t.Context(), l, a.Writes(), "mine")
		refusedWith(t, wait(t, "answer", done), code)
		if len(a.Writes()) > 0 || l.Word() != (api.Word{}) || q.If != (api.WordID{}) {
			t.Errorf("%s: %d more writes, word %+v", code, len(a.Writes()), l.Word())
		}
	}
}

// If a voter has not confirmed a deletion, the word is the empty text. A program then deletes the word by its new ID.
func TestADeletionThatAVoterMissesIsMadeAgain(t *testing.T) {
	a, _, l := campaign(t, lease)
	if err := l.Write(t.Context(), "paid"); err != nil {
		t.Fatal(err)
	}
	a.SetWord("payments", 7, "") // a majority has the deletion
	empty := a.Word("payments")
	a.RefuseWritesWith(503, api.ErrorDetail{Code: api.CodeNotAllVoters, Message: "b has not confirmed that", Word: empty})
	refusedWith(t, l.Write(t.Context(), ""), api.CodeNotAllVoters)
	if l.Word() != *empty {
		t.Fatalf("it knows %+v", l.Word())
	}
	a.RefuseWrites(0, "", "")
	if err := l.Write(t.Context(), ""); err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheCallersContextEndsAWrite(t *testing.T) {
	a, _, l := campaign(t, lease)
	defer a.HoldWrites()()
	ctx, cancel := context.WithCancel(t.Context())
	_, done := writes(t, ctx, l, a.Writes(), "mine")
	cancel()
	if err := wait(t, "answer", done); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "may still take effect") {
		t.Errorf("got %v", err)
	}
	if l.Word() != (api.Word{}) || !l.Valid() {
		t.Errorf("it knows %+v, valid: %t", l.Word(), l.Valid())
	}
}

// A successor may be elected before the answer comes.
func TestTheEndOfTheLeadershipEndsAWrite(t *testing.T) {
	a, stood, l := campaign(t, lease)
	defer a.HoldWrites()()
	_, done := writes(t, t.Context(), l, a.Writes(), "mine")
	stood.Revoke("resigned", lease)
	err := wait(t, "answer", done)
	if lost, ok := errors.AsType[*client.LostError](err); !ok || lost.Reason != "resigned" || !strings.Contains(err.Error(), "may still take effect") {
		t.Errorf("got %v", err)
	}
	if _, ok := errors.AsType[*client.LostError](l.Write(t.Context(), "later")); !ok || len(a.Writes()) > 0 {
		t.Errorf("a write after the end: %v, %d sent", err, len(a.Writes()))
	}
}
