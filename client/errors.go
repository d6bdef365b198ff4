package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/api"
)

// APIError is the agent's answer that it refuses, or is not able, to do what was asked.
type APIError struct {
	Status  int    // the HTTP status
	Code    string // one of api's Code constants; empty if the answer did not come from the socket API
	Message string
	Word    *api.Word // with api.CodeWordChanged and api.CodeNotAllVoters: what the word is now; nil: there is none
}

func (e *APIError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("unexpected answer %d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Code)
}

// refusal returns the error that an unsuccessful answer contains.
func refusal(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	var answer api.Error
	if err := json.Unmarshal(body, &answer); err == nil && answer.Err.Code != "" {
		return &APIError{Status: response.StatusCode, Code: answer.Err.Code, Message: answer.Err.Message, Word: answer.Err.Word}
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return &APIError{Status: response.StatusCode, Message: cmp.Or(text, "no reason given")}
}

// UnreachableError means that no answer came: no agent listens at the socket, this program may not
// connect to it, or the agent went away.
type UnreachableError struct {
	Socket string
	Reason string // why, as a sentence without a full stop
	Hint   string // what to do
	Err    error
}

func (e *UnreachableError) Error() string { return e.Reason }

func (e *UnreachableError) Unwrap() error { return e.Err }

// unanswered returns why a call got no answer. If the caller cancelled its context, that is the reason.
// If the context's deadline passed, the agent is the reason.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("ask the agent: %w", context.Cause(ctx))
	}
	if tooLong, ok := errors.AsType[tooLongError](err); ok {
		return fmt.Errorf("read the answer: %w", tooLong)
	}
	reason, hint := c.diagnose(ctx, err)
	return &UnreachableError{Socket: c.socket, Reason: reason, Hint: hint, Err: err}
}

// errForeign refuses a socket whose directory belongs to another user.
var errForeign = errors.New("dial agent: the socket's directory belongs to another user")

// maxSocketPath is how many bytes of a path fit into Linux's sockaddr_un, without its NUL.
const maxSocketPath = 107

func (c *Client) diagnose(ctx context.Context, err error) (reason, hint string) {
	const (
		hanging = "the agent may hang or be overloaded: see `systemctl status doyen` and its log"
		ended   = "the agent stopped or was killed, and its keeper or service starts it again: see `systemctl status doyen` and its log; if it has neither, start it with `doyen agent`"
	)
	info, statErr := os.Stat(c.socket)
	impostor, _ := errors.AsType[*impostorError](err)
	switch {
	case impostor != nil:
		return "the program that listens at " + c.socket + " may not be an agent: " + impostor.Error(),
			"let the agent listen in a directory that only its user and root may write to, or ask as user " + strconv.FormatUint(uint64(impostor.uid), 10)
	case errors.Is(err, errForeign):
		return filepath.Dir(c.socket) + " belongs to another user, who could answer in an agent's place",
			"set XDG_RUNTIME_DIR for the agent and the commands alike, or name another path with --socket or DOYEN_SOCKET"
	case c.socket == "":
		return "no socket is given", "name the agent's socket with --socket or DOYEN_SOCKET"
	case len(c.socket) > maxSocketPath:
		return fmt.Sprintf("the socket path %s has %d bytes, the system allows %d", c.socket, len(c.socket), maxSocketPath),
			"let the agent listen at a shorter path"
	case errors.Is(err, syscall.ENOENT):
		return "no socket exists at " + c.socket, c.elsewhere()
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "permission denied to connect to " + c.socket,
			"ask as root, as the user that runs the agent, or as a member of the socket's group"
	case statErr == nil && info.Mode().Type() != os.ModeSocket:
		return c.socket + " is not a socket", c.elsewhere()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "no agent listens at " + c.socket + " any more", ended
	case errors.Is(err, syscall.EAGAIN):
		return "too many connections wait at " + c.socket, hanging
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "no answer came in time from " + c.socket, hanging
	case hungUp(err):
		return "the agent at " + c.socket + " closed the connection", ended
	}
	return fmt.Sprintf("the program that listens at %s does not answer like an agent: %v", c.socket, err), c.elsewhere()
}

// hungUp reports whether the agent's end of the connection was closed before an answer came.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// wentAway reports whether the agent died or hung up, and its socket is still there. An agent that stops
// in an orderly way removes its socket.
func (c *Client) wentAway(err error) bool {
	info, statErr := os.Stat(c.socket)
	return statErr == nil && info.Mode().Type() == os.ModeSocket && (hungUp(err) || errors.Is(err, syscall.ECONNREFUSED))
}

// elsewhere names where else an agent might listen. Usually that is where root's agent listens, since
// other users have other default paths.
func (c *Client) elsewhere() string {
	if _, err := os.Stat(rootSocket); err == nil && c.socket != rootSocket {
		return "an agent of root is at " + rootSocket + ": name it with --socket or DOYEN_SOCKET"
	}
	return "start an agent with `doyen agent`, or name the socket of a running one with --socket or DOYEN_SOCKET"
}

// impostorError refuses a socket at which neither root nor the owner of its directory listens.
type impostorError struct {
	dir      string
	uid, own uint32 // the user of the listening process, and the directory's owner
}

func (e *impostorError) Error() string {
	return fmt.Sprintf("user %d answers there, in the directory %s, which others besides its owner, user %d, may write to", e.uid, e.dir, e.own)
}

// trusted protects root from a stranger's answers. In a directory that others may write to, such as /tmp, anybody
// could have made the socket. So root uses the socket only if root or the directory's owner listens there. Other
// users use the sockets of others at their own risk.
func trusted(c net.Conn, socket string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir := filepath.Dir(socket)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o022 == 0 {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	unix, isUnix := c.(*net.UnixConn)
	if !ok || !isUnix {
		return nil
	}
	var uid uint32
	var asked error
	raw, err := unix.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { uid, asked = listener(int(fd)) })
	}
	switch err = cmp.Or(err, asked); {
	case err != nil:
		return fmt.Errorf("ask who listens: %w", err)
	case uid != 0 && uid != owner.Uid:
		return &impostorError{dir, uid, owner.Uid}
	}
	return nil
}
