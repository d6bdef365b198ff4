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

// Candidacy is one campaign over the socket: a connection that lasts as long as the candidacy,
// and the lines that the agent writes to it. It judges nothing: it only passes on the
// deadlines that Campaign and Run keep.
//
// Several goroutines may call its methods, Next and Resume one at a time.
type Candidacy struct {
	client   *Client
	election string
	meta     string
	id       string
	term     atomic.Uint64 // the newest term received

	life  context.Context // ends with Close
	end   context.CancelFunc
	once  sync.Once
	mu    sync.Mutex
	lines *lines // of the newest connection
}

// lines holds what the agent writes to one connection.
type lines struct {
	conn   *net.UnixConn
	hangUp func()
	events chan api.CampaignEvent
	ended  chan struct{} // closed after the last event
	err    error         // why the lines ended; set before ended is closed
}

// errClosed is what Next returns after Close.
var errClosed = errors.New("the candidacy was withdrawn")

// The wait between two attempts to resume, or to ask again: an agent that died is back after some milliseconds.
const (
	firstResume = 5 * time.Millisecond
	lastResume  = 20 * time.Millisecond
	forever     = time.Duration(math.MaxInt64)
)

// Stand makes the calling program a candidate of its host in the election: POST
// /v1/elections/NAME/campaign. It returns when it has read the line by which the agent accepts
// the candidacy; ctx bounds only this wait. Errors are *APIError when the agent refused,
// *UnreachableError when it could not be asked. The caller must Close the candidacy.
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

// connect makes a new connection, and then that is the candidacy's.
func (s *Candidacy) connect(ctx context.Context, path string, request any) error {
	l := &lines{events: make(chan api.CampaignEvent), ended: make(chan struct{})}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := s.client.dial(ctx)
			l.conn, _ = conn.(*net.UnixConn)
			return conn, err
		},
		DisableCompression: true, DisableKeepAlives: true, // the connection is the candidacy, and serves nothing else
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

// Resume takes the candidacy up again on a new connection, after Next has returned the end of
// the former one: POST /v1/campaigns/ID/resume. An agent that died and was started again in
// time knows the program that it had elected. Resume tries again and again until ctx ends. The
// agent's next line is renewed or revoked. After an *APIError the agent has refused: it does
// not renew the program's lease any more.
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

// ID names the candidacy to the agent.
func (s *Candidacy) ID() string { return s.id }

// Election is the name of the election in which the program is a candidate.
func (s *Candidacy) Election() string { return s.election }

// Next waits for the agent's next line: elected, renewed or revoked. After an error no more
// lines come on this connection; it is an *UnreachableError if the agent ended the connection
// or went away. The program is then not a candidate any longer, unless it can Resume. Only an
// error of ctx, which ended before a line came, ends nothing.
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

// note keeps the term for which a receipt is to be given.
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

// Stopped gives the receipt for the newest term that Next returned: nothing that this program did
// as the leader is still under way, so that a successor need not wait for the lease to end. It also
// ends a leadership that was not revoked. Never give it for work that has not stopped: the
// guarantee of one leader rests on it. Before Next has returned a term nothing is sent: the agent
// would take the receipt for that of a term which the program has yet to hear of.
func (s *Candidacy) Stopped(ctx context.Context) error { return s.giveReceipt(ctx, "", receiptAgain) }

// StoppedBecause is Stopped for a program that gives up the lead unasked. People see the reason,
// one line, in the election's history.
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

// receiptAgain is for how long a receipt is given again to an agent that went away: its next
// process may be starting, and without the receipt the successor waits for the end of the lease.
const receiptAgain = 2 * time.Second

// Accompany makes the calling program a companion of its host: POST /v1/elections/*/campaign. It is
// never a candidate, and acts beside what leads: its lines name their election. Errors are as of
// Stand; *APIError has the code in_use if another companion acts in one of the elections. The caller
// must Close it.
func (c *Client) Accompany(ctx context.Context, meta string, reports api.Companion) (*Candidacy, error) {
	return c.Stand(ctx, api.EveryElection, api.CampaignRequest{Meta: meta, Role: api.RoleCompanion, Companion: &reports})
}

// Report replaces what a companion has reported of itself: POST /v1/campaigns/ID/companion.
func (s *Candidacy) Report(ctx context.Context, reports api.Companion) error {
	if _, err := call[struct{}](ctx, s.client, http.MethodPost, "/v1/campaigns/"+url.PathEscape(s.id)+"/companion", reports); err != nil {
		return fmt.Errorf("report as companion: %w", err)
	}
	return nil
}

// StoppedIn gives a companion's receipt for one election: nothing of it acts there under the term
// any more, and what it had set up for it is undone. The reason, one line, is for a companion that
// was not asked to stop: the host then hands over.
func (s *Candidacy) StoppedIn(ctx context.Context, election string, term uint64, reason string) error {
	return s.client.giveReceipt(ctx, s.id, api.StoppedRequest{Term: term, Election: election, Reason: reason}, 0)
}

// Stopped gives the receipt for a candidacy and its term, also from another process of the
// same user: POST /v1/campaigns/ID/stopped. An agent that went away is asked again until ctx ends,
// for up to 2 s.
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

// SyscallConn gives access to the newest connection's descriptor. The agent takes the candidacy for
// open until the last copy of the descriptor is closed. So a process that acts for this one should
// hold a copy: then the end of this one is not taken for proof that nobody acts.
func (s *Candidacy) SyscallConn() (syscall.RawConn, error) { return s.newest().conn.SyscallConn() }

// Close withdraws, even while there are other copies of the descriptor. It gives no receipt:
// if the program leads and has given none, the agent lets the lease run out.
func (s *Candidacy) Close() error {
	s.once.Do(func() {
		s.mu.Lock() // connect adds no lines from here on
		s.end()
		l := s.lines
		s.mu.Unlock()
		_ = l.conn.CloseWrite() // for every copy; it fails only if the agent closed it before
		l.hangUp()
		<-l.ended
	})
	return nil
}
