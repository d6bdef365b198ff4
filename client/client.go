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

	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	// maxBody bounds an answer, in bytes: room for some ten thousand members.
	maxBody = 8 << 20
	// idleTimeout is how long a connection is kept for another call. An agent closes idle connections
	// after 10 s. This shorter time avoids a call on a connection that the agent is just closing.
	idleTimeout = 5 * time.Second
	// returnLimit is how long a read is repeated after the agent went away. A keeper starts a dead agent
	// again within 50 ms, and by default a hanging one within about half a second. The agent then goes on
	// leading. So a script that asks meanwhile should not get the answer that nobody leads.
	returnLimit = time.Second
	// origin is the agent's place in URLs. Which agent gets the call depends on the socket alone.
	origin = "http://doyen"
)

// Client asks the agent of one socket. Several goroutines may use it at once. It keeps connections open
// between calls until Close.
type Client struct {
	// Raw, if not nil, is called with the unchanged body of every successful answer and with every line
	// of a watch. An agent newer than this package may send fields that package api does not have. Raw
	// must not keep the slice.
	Raw func(body []byte)

	// Retrying, if not nil, is called each time before Campaign or Run tries again, with the reason why
	// the program is not a candidate. Set it before the first call.
	Retrying func(err error)

	socket string
	http   *http.Client
}

// New returns a client of the agent that listens at the path. It connects at the first call.
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

// DefaultSocket is where an agent of this user listens by default. For root it is /run/doyen/doyen.sock,
// else a path below XDG_RUNTIME_DIR. If that variable is unset or not an absolute path (cron, a bare
// container), it is a path in a directory of the user below the temporary directory.
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

// foreign reports whether the directory belongs to another user. Anybody can make a directory below the
// temporary directory, and answer there in place of the agent.
func foreign(dir string, uid int) bool {
	info, err := os.Lstat(dir)
	if err != nil {
		return false // then dialling fails anyway
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid != 0 && owner.Uid != uint32(uid)
}

// rootSocket is where an agent that runs as root listens.
const rootSocket = "/run/doyen/doyen.sock"

// Socket returns the path given to New.
func (c *Client) Socket() string { return c.socket }

// Close closes the idle connections. Calls in progress continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func electionPath(name, call string) string { return "/v1/elections/" + url.PathEscape(name) + call }

// call makes one call and decodes its answer. It ignores unknown fields, as the socket API demands of its
// readers.
func call[T any](ctx context.Context, c *Client, method, path string, in any) (T, error) {
	answer, _, err := timed[T](ctx, c, method, path, in)
	return answer, err
}

// timed is call, and also returns when the answered request was sent, by the clock of package alarm.
func timed[T any](ctx context.Context, c *Client, method, path string, in any) (answer T, asked int64, err error) {
	body, asked, err := c.ask(ctx, method, path, in)
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

// ask makes a call and returns the body of a successful answer. If the agent died without removing its
// socket, its next process may be starting. So ask repeats a read for up to returnLimit. A call that
// changes something is never repeated: the agent may have carried it out.
func (c *Client) ask(ctx context.Context, method, path string, in any) (body []byte, asked int64, err error) {
	went, reads := false, method == http.MethodGet
	err = repeat(ctx, returnLimit, func() error {
		asked = alarm.Now()
		response, err := c.send(ctx, c.http, method, path, in)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
		switch {
		case err != nil:
			return c.unanswered(ctx, err)
		case len(body) > maxBody:
			return c.unanswered(ctx, tooLongError{maxBody})
		}
		return nil
	}, func(err error) bool {
		// The next process replaces the socket, so for a moment there may be no socket.
		went = reads && (c.wentAway(err) || went && errors.Is(err, syscall.ENOENT))
		return went
	})
	switch {
	case err == nil:
	case went && errors.Is(ctx.Err(), context.Canceled):
		err = c.unanswered(ctx, err)
	case !reads && errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Cause(ctx)):
		err = fmt.Errorf("%w; the request may still take effect", err)
	}
	return body, asked, err
}

// repeat calls try until it succeeds, or fails with an error for which passes is false, or limit has
// passed since the first failure. It returns the last error.
func repeat(ctx context.Context, limit time.Duration, try func() error, passes func(error) bool) error {
	var end time.Time
	pause := pause{first: firstResume, most: lastResume}
	for {
		err := try()
		if err == nil || !passes(err) {
			return err
		}
		if end.IsZero() {
			end = time.Now().Add(limit)
		}
		if !time.Now().Before(end) || !pause.wait(ctx) {
			return err
		}
	}
}

// send makes one call with the HTTP client `by`, and returns a successful answer. The caller closes
// its body.
func (c *Client) send(ctx context.Context, by *http.Client, method, path string, in any) (*http.Response, error) {
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

// tooLongError reports an answer that is longer than its limit.
type tooLongError struct{ limit int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("the answer is longer than %d bytes", e.limit)
}
