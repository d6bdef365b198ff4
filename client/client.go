package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	// maxBody bounds an answer, in bytes: room for some ten thousand members.
	maxBody = 8 << 20
	// idleTimeout is for how long a connection is kept for another call. An agent closes its end
	// after 10 s: a shorter time here keeps calls from meeting that.
	idleTimeout = 5 * time.Second
	// returnLimit is for how long a read asks an agent again that went away. A keeper starts an
	// agent again within 50 ms of its death, and within half a second if it hangs; what it led it
	// leads on. A script that asks just then should not learn that nobody leads.
	returnLimit = time.Second
	// origin names the agent in URLs; the socket decides which one it is.
	origin = "http://doyen"
)

// Client asks the agent of one socket. It may be used by several goroutines at
// once, and keeps connections open between calls until Close.
type Client struct {
	// Raw, if not nil, is given the body of every successful answer and every line of a watch as
	// it came: an agent newer than this package may send fields that package api does not name.
	// Raw must not keep the slice.
	Raw func(body []byte)

	// Retrying, if not nil, gets the reason why the program is not a candidate, each time before
	// Campaign or Run tries again. Set it before the first call.
	Retrying func(err error)

	socket string
	http   *http.Client
}

// New returns a client of the agent that listens at the path. Nothing is
// dialled before the first call.
func New(socket string) *Client {
	c := &Client{socket: socket}
	c.http = httpClient(&http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		DisableCompression: true,
		IdleConnTimeout:    idleTimeout,
	})
	return c
}

func httpClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	if c.socket == temporarySocket() && foreign(filepath.Dir(c.socket), os.Getuid()) {
		return nil, errForeign
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	if err := trusted(conn, c.socket); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// DefaultSocket is where an agent of this user listens by default: /run/doyen/doyen.sock as
// root, else below XDG_RUNTIME_DIR. Where that is unset or not an absolute path (cron, a bare
// container), it is in a directory of the user below the temporary one.
func DefaultSocket() string {
	if os.Geteuid() == 0 {
		return rootSocket
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "doyen", "doyen.sock")
	}
	return temporarySocket()
}

func temporarySocket() string {
	return filepath.Join(os.TempDir(), "doyen-"+strconv.Itoa(os.Getuid()), "doyen.sock")
}

// foreign reports whether the directory belongs to another user. Anybody may have made one
// below the temporary directory, and answer there in place of the agent.
func foreign(dir string, uid int) bool {
	info, err := os.Lstat(dir)
	if err != nil {
		return false // then dialling fails too
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid != 0 && owner.Uid != uint32(uid)
}

// rootSocket is where an agent that root runs listens.
const rootSocket = "/run/doyen/doyen.sock"

// Socket returns the path given to New.
func (c *Client) Socket() string { return c.socket }

// Close closes the idle connections. Calls in progress continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Agent returns what the agent reports about itself: GET /v1/agent.
func (c *Client) Agent(ctx context.Context) (api.Agent, error) {
	return call[api.Agent](ctx, c, http.MethodGet, "/v1/agent", nil)
}

// Members returns the members the agent knows: GET /v1/members.
func (c *Client) Members(ctx context.Context) ([]api.Member, error) {
	answer, err := call[api.Members](ctx, c, http.MethodGet, "/v1/members", nil)
	return answer.Members, err
}

// Elections returns every election the agent knows: GET /v1/elections.
func (c *Client) Elections(ctx context.Context) ([]api.Election, error) {
	answer, err := call[api.Elections](ctx, c, http.MethodGet, "/v1/elections", nil)
	return answer.Elections, err
}

// ElectionOptions are the options of Election.
type ElectionOptions struct {
	// Quorum makes the agent ask a majority of the voters before it answers. If no majority
	// answers, Election fails with api.CodeNoQuorum.
	Quorum bool
}

// Election returns one election: GET /v1/elections/NAME. If it never had a candidate, the
// error is an *APIError with api.CodeNotFound.
func (c *Client) Election(ctx context.Context, name string, opts ElectionOptions) (api.Election, error) {
	path := electionPath(name, "")
	if opts.Quorum {
		path += "?consistency=quorum"
	}
	return call[api.Election](ctx, c, http.MethodGet, path, nil)
}

// IsLeader reports whether the agent of this host leads the election. It also returns the
// agent's answer, as Election does, with the same errors.
//
// leads is false although answer.IsLeader is true, if the answer took longer than the rest of
// the lease that it reports: this process or the agent may have been suspended meanwhile. If
// leads is true, the lease had not ended when the call returned. The agent may step down at
// any moment: a program that has to be notified of that campaigns.
func (c *Client) IsLeader(ctx context.Context, name string) (leads bool, answer api.Election, err error) {
	answer, asked, err := timed[api.Election](ctx, c, http.MethodGet, electionPath(name, ""), nil)
	return err == nil && proves(answer, time.Duration(alarm.Now()-asked)), answer, err
}

// proves reports whether an answer shows that the agent leads now, given how long ago the
// request was sent. Without a quorum there is no lease to compare with that time.
func proves(e api.Election, since time.Duration) bool {
	return e.IsLeader && (e.Authority == api.AuthorityView || since < time.Duration(e.LeaseRemainingMS)*time.Millisecond)
}

// Resign makes this agent step down in the election and waits for the outcome.
func (c *Client) Resign(ctx context.Context, name string) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, electionPath(name, "/resign"), struct{}{})
}

// Transfer makes this agent hand the election over to the candidate with that name, and waits
// for the outcome.
func (c *Client) Transfer(ctx context.Context, name, to string) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, electionPath(name, "/transfer"), api.TransferRequest{To: to})
}

// DrainAnyway drains this agent even if that leaves an election without a candidate which the
// configuration expects.
func (c *Client) DrainAnyway(ctx context.Context) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/drain", api.DrainRequest{On: true, Force: true})
}

// Drain makes this agent hand over what it leads and be no candidate, or ends such a drain.
func (c *Client) Drain(ctx context.Context, on bool) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/drain", api.DrainRequest{On: on})
}

// DrainAgent is Drain for the named agent, which any voter can have drained. With anyway it is
// drained even if that leaves an election without a candidate which its configuration expects.
func (c *Client) DrainAgent(ctx context.Context, name string, on, anyway bool) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/drain", api.DrainRequest{On: on, Force: anyway, Agent: name})
}

// Agents asks every agent about itself.
func (c *Client) Agents(ctx context.Context) ([]api.AgentReport, error) {
	all, err := call[api.Agents](ctx, c, http.MethodGet, "/v1/agents", nil)
	return all.Agents, err
}

// Leave makes this agent hand over, leave the cluster and stop.
func (c *Client) Leave(ctx context.Context) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/leave", struct{}{})
}

// Reload makes this agent read its configuration again.
func (c *Client) Reload(ctx context.Context) (api.Reload, error) {
	return call[api.Reload](ctx, c, http.MethodPost, "/v1/reload", struct{}{})
}

// Restart makes this agent's process end and its next one start, which goes on leading. It
// returns before the next process answers: that one has another boot ID.
func (c *Client) Restart(ctx context.Context) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/restart", struct{}{})
}

func electionPath(name, call string) string {
	return "/v1/elections/" + url.PathEscape(name) + call
}

// call makes one call and decodes its answer. It ignores fields that it does not know, as the
// socket API demands of its readers.
func call[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	answer, _, err := timed[T](ctx, c, method, path, in)
	return answer, err
}

// timed is call that also returns when the request was sent whose answer came, on the clock of
// package alarm.
func timed[T any](ctx context.Context, c *Client, method, path string, in any) (answer T, asked int64, err error) {
	var body []byte
	if method == http.MethodGet {
		body, asked, err = c.read(ctx, path)
	} else {
		asked = alarm.Now()
		body, err = c.change(ctx, method, path, in)
	}
	if err != nil {
		return answer, asked, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, asked, fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
	}
	if c.Raw != nil {
		c.Raw(body)
	}
	return answer, asked, nil
}

// read makes a call that changes nothing. If the agent went away without removing its socket,
// its next process may be starting, and read asks again until returnLimit after that. A call that
// changes something is never made twice: the agent may have carried it out.
func (c *Client) read(ctx context.Context, path string) (body []byte, asked int64, err error) {
	went := false
	err = repeat(ctx, returnLimit, func() (err error) {
		asked = alarm.Now()
		body, err = c.once(ctx, http.MethodGet, path, nil)
		return err
	}, func(err error) bool {
		// The next process replaces the socket: for a moment there is none.
		went = c.wentAway(err) || went && errors.Is(err, syscall.ENOENT)
		return went
	})
	if went && errors.Is(ctx.Err(), context.Canceled) {
		err = c.unanswered(ctx, err)
	}
	return body, asked, err
}

// change makes a call that changes something.
func (c *Client) change(ctx context.Context, method, path string, in any) ([]byte, error) {
	body, err := c.once(ctx, method, path, in)
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w; the request may still take effect", err)
	}
	return body, err
}

// once makes one call and returns the body of a successful answer.
func (c *Client) once(ctx context.Context, method, path string, in any) ([]byte, error) {
	response, err := c.send(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := readBody(response.Body)
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	return body, nil
}

// repeat tries until an attempt succeeds or fails with an error that does not pass, or until the
// limit has passed since the first failure. It returns the last error.
func repeat(ctx context.Context, limit time.Duration, try func() error, passes func(error) bool) error {
	var end time.Time
	for wait := firstResume; ; wait = min(2*wait, lastResume) {
		err := try()
		if err == nil || !passes(err) {
			return err
		}
		if end.IsZero() {
			end = time.Now().Add(limit)
		}
		if !time.Now().Before(end) || !sleep(ctx, wait) {
			return err
		}
	}
}

// send makes one call and returns a successful answer, whose body the caller
// closes.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	return c.sendBy(ctx, c.http, method, path, in)
}

func (c *Client) sendBy(ctx context.Context, by *http.Client, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the body of %s: %w", path, err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, origin+path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request %s: %w", path, err)
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := by.Do(request)
	if err != nil {
		return nil, c.unanswered(ctx, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response, nil
}

// tooLongError is an answer that is longer than its bound.
type tooLongError struct{ limit int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("the answer is longer than %d bytes", e.limit)
}

func readBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = tooLongError{maxBody}
	}
	return body, err
}
