package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// LostError is why a leadership ended.
type LostError struct {
	Election string
	Term     uint64 // the last term of the leadership
	Reason   string // in words; from the agent, if it gave a reason
	// StopBy is the instant of CLOCK_BOOTTIME, in nanoseconds, by which the program must have
	// stopped: from then on, a successor may act. It may already have passed.
	StopBy int64
	Err    error // why the connection broke, if it did
}

func (e *LostError) Error() string {
	return fmt.Sprintf("leadership of %s, term %d, has ended: %s", e.Election, e.Term, e.Reason)
}

func (e *LostError) Unwrap() error { return e.Err }

// errResigned is the cause of a leadership that the program gave up itself.
var errResigned = errors.New("given up by this program")

// receiptTimeout bounds how long Close waits for the agent.
const receiptTimeout = 2 * time.Second

// Leadership is the right to act for an election until its context ends. Its
// methods may be called by several goroutines.
type Leadership struct {
	candidacy *Candidacy
	ctx       context.Context
	end       context.CancelCauseFunc
	alarm     *alarm.Alarm
	view      bool          // elected without a quorum: others may lead as soon as this program's agent is gone
	revoked   bool          // the agent sent a revoked line; read this only after followed is closed
	followed  chan struct{} // closed when no more lines are read for this leadership
	resigning sync.Once

	term  atomic.Uint64
	until atomic.Int64 // the deadline, on CLOCK_BOOTTIME

	writing sync.Mutex // held while the word is written
	word    atomic.Pointer[api.Word]
}

// lead makes a leadership from an elected line, and starts to follow the later lines about it.
func lead(ctx context.Context, s *Candidacy, elected api.CampaignEvent) (*Leadership, error) {
	a, err := alarm.New()
	if err != nil {
		return nil, fmt.Errorf("lead %s: %w", s.election, err)
	}
	l := &Leadership{candidacy: s, alarm: a, followed: make(chan struct{})}
	l.word.Store(elected.Word)
	l.ctx, l.end = context.WithCancelCause(ctx)
	l.take(elected)
	go l.follow()
	return l, nil
}

// Context ends when the lease ends by this process's own reading of CLOCK_BOOTTIME, even if the agent is
// frozen or dead. It also ends when the agent revokes the leadership, when Resign or Close is called, and when
// the context given to Campaign or Run ends. In the last case its cause is that context's, otherwise a
// *LostError. The agent's death alone does not end it. The leadership resumes with the agent's next process
// run, if that run starts before the lease ends and does not refuse.
//
// A program that gets no processor time, or checks too rarely, notices the end late. Work that must not
// run at the same time as a successor's has to carry Token.
func (l *Leadership) Context() context.Context { return l.ctx }

// Token returns the term, which is the fencing token. A protected resource keeps the highest token
// that it has seen, and refuses lower ones. The token rises from one leader to the next, and
// sometimes under the same leader: call Token again for each use.
func (l *Leadership) Token() uint64 { return l.term.Load() }

// Valid reports whether the program may act at this moment, by the clock.
func (l *Leadership) Valid() bool {
	return l.ctx.Err() == nil && alarm.Now() < l.until.Load()
}

// Deadline returns when the lease ends unless it is renewed. Normally every heartbeat, or every second
// one, renews it. A time.Time does not count a suspend of the host: after one, call Deadline again, or
// use Valid.
func (l *Leadership) Deadline() time.Time {
	return time.Now().Add(time.Duration(l.until.Load() - alarm.Now()))
}

// Word returns the election's word as this program knows it: what the former leader left, or what Write wrote
// since. It is the zero word if there is none.
func (l *Leadership) Word() api.Word {
	if w := l.word.Load(); w != nil {
		return *w
	}
	return api.Word{}
}

// Write replaces the word that Word returns by a text of at most 1024 bytes of UTF-8. It returns nil once a
// majority of the voters has the new word on disk: every later leader is given this word, or a newer one. While
// the agent can't be reached, Write repeats the call until ctx or the leadership ends. After an error the word
// may have been written all the same. After an *APIError with api.CodeWordChanged, Word returns the word that
// the election has now.
func (l *Leadership) Write(ctx context.Context, text string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	tries := 0
	err := repeat(ctx, forever, func() error {
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		tries++
		id, err := l.candidacy.Write(ctx, api.WordRequest{Term: l.Token(), If: l.Word().WordID, Text: text})
		refused, ok := errors.AsType[*APIError](err)
		switch {
		case err == nil:
			l.word.Store(&api.Word{WordID: id, Text: text})
		case ok && refused.Code == api.CodeWordChanged:
			l.word.Store(refused.Word)
			if tries > 1 && l.Word().Text == text {
				return nil // an earlier try had written it
			}
		case ok && refused.Code == api.CodeNotAllVoters:
			l.word.Store(refused.Word)
		}
		return err
	}, func(err error) bool { _, broken := errors.AsType[*UnreachableError](err); return broken })
	if err != nil {
		return fmt.Errorf("write the word of %s: %w", l.candidacy.election, err)
	}
	return nil
}

// Resign ends the context, gives the receipt and withdraws. Call it only when everything done as the
// leader has stopped: a successor may act before Resign returns. Only the first call has an effect.
func (l *Leadership) Resign(ctx context.Context) error {
	var err error
	l.resigning.Do(func() {
		l.over(errResigned.Error(), nil)
		l.awaitEnd()
		again := receiptAgain
		if l.view || alarm.Now() >= l.until.Load() {
			again = 0 // no successor waits for the receipt, so it is not repeated
		}
		err = l.candidacy.giveReceipt(ctx, "", again)
		if gone, ok := errors.AsType[*APIError](err); ok && gone.Code == api.CodeNotFound {
			err = nil // the agent had already ended the candidacy, so there is nothing to release
		}
		err = errors.Join(err, l.candidacy.Close())
	})
	return err
}

// Close is Resign with a bound on how long it waits for the agent. If the receipt could not be given, the
// successor waits until the lease ends.
func (l *Leadership) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTimeout)
	defer cancel()
	return l.Resign(ctx)
}

// follow reads the agent's lines about the leadership until it has ended.
func (l *Leadership) follow() {
	defer close(l.followed)
	for {
		lines := l.candidacy.newest()
		select {
		case <-l.ctx.Done():
			return
		case <-l.alarm.C:
			if alarm.Now() >= l.until.Load() {
				l.over("its lease ended and the agent did not renew it", nil)
				return
			}
		case event := <-lines.events:
			l.candidacy.note(event)
			if l.ctx.Err() != nil {
				return // the leadership has ended: a later line is about another one
			}
			if alarm.Now() >= l.until.Load() { // this process had no processor time, and the lease ended before it read the line
				l.over("its lease ended before this program read that it was renewed", nil)
				return
			}
			l.hear(event)
		case <-lines.ended:
			if !l.resume() {
				return
			}
		}
	}
}

// resume continues the candidacy with the agent's next process run. Meanwhile the leadership goes on
// until its deadline. resume returns false if the leadership has ended.
func (l *Leadership) resume() bool {
	fault := l.candidacy.fault(l.ctx)
	if _, broken := errors.AsType[*UnreachableError](fault); l.view || !broken {
		l.over("the connection to the agent ended", fault)
		return false
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	resumed := make(chan error, 1)
	go func() { resumed <- l.candidacy.Resume(ctx) }()
	for {
		select {
		case err := <-resumed:
			if err != nil {
				l.over("the connection to the agent ended, and the program could not resume: "+err.Error(), errors.Join(fault, err))
			}
			return err == nil
		case <-l.alarm.C:
			if alarm.Now() >= l.until.Load() {
				l.over("the connection to the agent ended, and the lease before it was back", fault)
				cancel()
				<-resumed // so no request is under way when the program becomes a candidate again
				return false
			}
		}
	}
}

func (l *Leadership) hear(event api.CampaignEvent) {
	switch event.Type {
	case api.CampaignElected, api.CampaignRenewed:
		l.take(event)
	case api.CampaignRevoked:
		l.revoked = true
		l.until.Store(min(l.until.Load(), event.StopByBoottimeNS))
		l.over(event.Reason, nil)
	}
}

func (l *Leadership) take(event api.CampaignEvent) {
	l.view = event.Authority == api.AuthorityView
	l.term.Store(event.Term)
	l.until.Store(event.ValidUntilBoottimeNS)
	l.alarm.Set(event.ValidUntilBoottimeNS)
}

func (l *Leadership) over(reason string, err error) {
	l.end(&LostError{Election: l.candidacy.election, Term: l.Token(), Reason: reason, StopBy: l.until.Load(), Err: err})
}

// awaitEnd waits, after the leadership has ended, until no more lines are read for it.
func (l *Leadership) awaitEnd() {
	<-l.followed
	l.alarm.Close()
}
