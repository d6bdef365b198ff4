package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
)

// Candidacy is one campaign over the socket: a connection that lasts as long as the candidacy, and the
// lines that the agent writes to this connection. A Candidacy passes deadlines on and does not check
// them. Campaign and Run check them.
//
// Several goroutines may call its methods, but only one at a time may call Next or Resume.
type Candidacy struct {
	client   *Client
	election string
	meta     string
	id       string
	term     atomic.Uint64 // the newest term received

	life  context.Context // Close ends it
	end   context.CancelFunc
	once  sync.Once
	mu    sync.Mutex
	lines *lines // the lines of the newest connection
}

// lines holds what the agent writes to one connection.
type lines struct {
	conn   *net.UnixConn
	hangUp func()
	events chan api.CampaignEvent
	ended  chan struct{} // closed after the last event
	err    error         // why the lines ended; set before ended is closed
}

var errClosed = errors.New("the candidacy was withdrawn")

// The wait between two attempts to resume, or to repeat a call. It is short, because an agent that died
// is back after some milliseconds.
const (
	firstResume = 5 * time.Millisecond
	lastResume  = 20 * time.Millisecond
	forever     = time.Duration(math.MaxInt64)
)

// Stand makes the calling program a candidate of its host in the election: POST
// /v1/elections/NAME/campaign. It returns when it has read the line by which the agent accepts the
// candidacy; ctx bounds only this wait. The error is an *APIError if the agent refused, an
// *UnreachableError if no answer came. The caller must Close the candidacy.
func (c *Client) Stand(ctx context.Context, election string, request api.CampaignRequest) (*Candidacy, error) {
	s := &Candidacy{client: c, election: election, meta: request.Meta}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.connect(ctx, electionPath(election, "/campaign"), request); err != nil {
		return nil, err
	}
	first, err := s.Next(ctx)
	if err == nil && (first.Type != api.CampaignCandidate || first.Campaign == "") {
		err = fmt.Errorf("campaign in %s: the agent's first line is %q of campaign %q, expected candidate", election, first.Type, first.Campaign)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.id = first.Campaign
	return s, nil
}

// connect makes a new connection, which becomes the candidacy's connection.
func (s *Candidacy) connect(ctx context.Context, path string, request any) error {
	l := &lines{events: make(chan api.CampaignEvent), ended: make(chan struct{})}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := s.client.dial(ctx)
			l.conn, _ = conn.(*net.UnixConn)
			return conn, err
		},
		DisableCompression: true, DisableKeepAlives: true, // this connection is the candidacy, so it carries nothing else
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	response, err := s.client.send(life, httpClient(transport), http.MethodPost, path, request)
	if err != nil {
		cancel(nil)
		if ctx.Err() != nil {
			err = s.client.unanswered(ctx, err)
		}
		return err
	}
	l.hangUp = func() { cancel(errClosed); response.Body.Close() }
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		l.hangUp()
		return errClosed
	}
	s.lines = l
	go s.read(l, response.Body)
	return nil
}

// Resume continues the candidacy on a new connection, after Next has returned the end of the old one:
// POST /v1/campaigns/ID/resume. An agent that died and was started again in time still knows the program
// that it had elected. Resume tries again and again until ctx ends. The agent's next line is renewed or
// revoked. If the error is an *APIError, the agent has refused: it does not renew the program's lease any
// more.
func (s *Candidacy) Resume(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	s.newest().hangUp()
	return repeat(ctx, forever, func() error {
		if s.life.Err() != nil {
			return errClosed
		}
		return s.connect(ctx, "/v1/campaigns/"+url.PathEscape(s.id)+"/resume", api.ResumeRequest{Term: s.term.Load(), Meta: s.meta})
	}, passing)
}

// newest returns the lines of the newest connection.
func (s *Candidacy) newest() *lines {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

// read passes each line on until the connection ends.
func (s *Candidacy) read(l *lines, body io.Reader) {
	defer close(l.ended)
	for event, err := range events[api.CampaignEvent](s.client, body) {
		if err != nil {
			l.err = err
			return
		}
		select {
		case l.events <- event:
		case <-s.life.Done():
			l.err = errClosed
			return
		}
	}
}

// ID is the agent's ID for the candidacy.
func (s *Candidacy) ID() string { return s.id }

// Election is the name of the election in which the program is a candidate.
func (s *Candidacy) Election() string { return s.election }

// Next waits for the agent's next line: elected, renewed or revoked. If ctx ends before a line comes,
// Next returns an error and the candidacy goes on. Any other error means that this connection gives no
// more lines. It is an *UnreachableError if the agent ended the connection or died: then the program is
// not a candidate any more, unless Resume succeeds.
func (s *Candidacy) Next(ctx context.Context) (api.CampaignEvent, error) {
	l := s.newest()
	select {
	case event := <-l.events:
		s.note(event)
		return event, nil
	case <-l.ended:
		return api.CampaignEvent{}, s.fault(ctx)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return api.CampaignEvent{}, s.client.unanswered(ctx, ctx.Err())
		}
		return api.CampaignEvent{}, fmt.Errorf("wait for the agent: %w", context.Cause(ctx))
	}
}

// note stores the term for which a receipt must be given.
func (s *Candidacy) note(event api.CampaignEvent) {
	if event.Type == api.CampaignElected || event.Type == api.CampaignRenewed {
		s.term.Store(event.Term)
	}
}

func (s *Candidacy) fault(ctx context.Context) error {
	if s.life.Err() != nil {
		return fmt.Errorf("wait for the agent: %w", errClosed)
	}
	return s.client.ended(context.WithoutCancel(ctx), "campaign", s.newest().err)
}

// Stopped gives the receipt for the newest term that Next returned: nothing that this program did as the
// leader is still under way. So a successor need not wait for the lease to end. Stopped also ends a
// leadership that was not revoked. Never call it for work that has not stopped: the guarantee of one
// leader depends on it. Before Next has returned a term, Stopped sends nothing: the agent could count the
// receipt for a term that the program does not know yet.
func (s *Candidacy) Stopped(ctx context.Context) error { return s.giveReceipt(ctx, "", receiptAgain) }

// StoppedBecause is Stopped for a program that gives up the lead without being asked. The reason, one
// line, is shown in the election's history.
func (s *Candidacy) StoppedBecause(ctx context.Context, reason string) error {
	return s.giveReceipt(ctx, reason, receiptAgain)
}

func (s *Candidacy) giveReceipt(ctx context.Context, reason string, again time.Duration) error {
	term := s.term.Load()
	if term == 0 {
		return nil
	}
	return s.client.giveReceipt(ctx, s.id, api.StoppedRequest{Term: term, Reason: reason}, again)
}

// receiptAgain is how long a receipt is repeated if the agent went away: its next process may be
// starting. Without the receipt, the successor waits until the lease ends.
const receiptAgain = 2 * time.Second

// Accompany makes the calling program a companion of its host: POST /v1/elections/*/campaign. A companion
// is never a candidate: it acts beside what leads on its host, and its lines name their election. Errors
// are those of Stand; an *APIError has the code in_use if another companion acts in one of the elections.
// The caller must Close the result.
func (c *Client) Accompany(ctx context.Context, meta string, reports api.Companion) (*Candidacy, error) {
	return c.Stand(ctx, api.EveryElection, api.CampaignRequest{Meta: meta, Role: api.RoleCompanion, Companion: &reports})
}

// Report replaces all that a companion has reported about itself: POST /v1/campaigns/ID/companion.
func (s *Candidacy) Report(ctx context.Context, reports api.Companion) error {
	if _, err := call[struct{}](ctx, s.client, http.MethodPost, "/v1/campaigns/"+url.PathEscape(s.id)+"/companion", reports); err != nil {
		return fmt.Errorf("report as companion: %w", err)
	}
	return nil
}

// Write replaces the election's word while this program may act under w.Term: POST /v1/campaigns/ID/word. It
// returns the new word's ID. An empty text deletes the word. An *APIError has api.CodeWordChanged if the
// present word's ID is not w.If, api.CodeNotConfirmed if the new word may have been written all the same,
// and api.CodeNotAllVoters if the word is empty now but a voter has not confirmed that.
func (s *Candidacy) Write(ctx context.Context, w api.WordRequest) (api.WordID, error) {
	return s.client.WriteWord(ctx, s.id, w)
}

// WriteWord is Candidacy.Write for the campaign with the ID. Any process of the campaign's user may call it.
func (c *Client) WriteWord(ctx context.Context, campaign string, w api.WordRequest) (api.WordID, error) {
	return call[api.WordID](ctx, c, http.MethodPost, "/v1/campaigns/"+url.PathEscape(campaign)+"/word", w)
}

// StoppedIn gives a companion's receipt for one election: the companion has stopped acting there under
// the term, and has undone what it had set up for the term. If the companion was not asked to stop, the
// host then hands over. The reason, one line, is for this case only.
func (s *Candidacy) StoppedIn(ctx context.Context, election string, term uint64, reason string) error {
	return s.client.giveReceipt(ctx, s.id, api.StoppedRequest{Term: term, Election: election, Reason: reason}, 0)
}

// Stopped gives the receipt for a candidacy and its term. Another process of the same user may call it
// too. If the agent went away, Stopped repeats the call until ctx ends, for up to 2 s.
func (c *Client) Stopped(ctx context.Context, campaign string, term uint64) error {
	return c.giveReceipt(ctx, campaign, api.StoppedRequest{Term: term}, receiptAgain)
}

func (c *Client) giveReceipt(ctx context.Context, campaign string, receipt api.StoppedRequest, again time.Duration) error {
	err := repeat(ctx, again, func() error {
		_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/campaigns/"+url.PathEscape(campaign)+"/stopped", receipt)
		return err
	}, passing)
	if err != nil {
		return fmt.Errorf("give the receipt of campaign %s: %w", campaign, err)
	}
	return nil
}

// SyscallConn gives access to the newest connection's descriptor. To the agent, the candidacy is open
// until the last copy of the descriptor is closed. So a process that acts for this one should have a
// copy: then this process's end does not count as proof that nobody acts.
func (s *Candidacy) SyscallConn() (syscall.RawConn, error) { return s.newest().conn.SyscallConn() }

// Close withdraws, even while other copies of the descriptor exist. It gives no receipt: if the program
// leads and has not given one, the agent lets the lease expire.
func (s *Candidacy) Close() error {
	s.once.Do(func() {
		s.mu.Lock() // from here on, connect adds no lines
		s.end()
		l := s.lines
		s.mu.Unlock()
		_ = l.conn.CloseWrite() // reaches all copies of the descriptor; fails only if the agent has closed the connection
		l.hangUp()
		<-l.ended
	})
	return nil
}
