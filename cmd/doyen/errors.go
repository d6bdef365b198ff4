package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// The exit codes; the help of each command explains 1 and 2. is-leader: 1 is that another agent
// leads, 2 that nobody does. leader: 2 is that nobody leads. resign, transfer: 1 is refused.
const (
	exitOK          = 0
	exitFailed      = 1
	exitNone        = 2
	exitUnreachable = 3
	exitUsage       = 64 // EX_USAGE of sysexits.h
	exitConfig      = 78 // EX_CONFIG
)

// silentExit is an outcome that the exit code shows and no message.
type silentExit struct{ code int }

func (e silentExit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// failure is an error with its exit code and what to do about it.
type failure struct {
	code int
	what string
	err  error // why; may be nil
	hint string
}

func (e *failure) Error() string {
	if e.err == nil {
		return e.what
	}
	return e.what + ": " + e.err.Error()
}

func (e *failure) Unwrap() error { return e.err }

// usage is a command line that can't be understood.
func usage(hint, format string, args ...any) error {
	return &failure{code: exitUsage, what: fmt.Sprintf(format, args...), hint: hint}
}

// mistakes is what is wrong with a configuration, at least one thing. Each is reported in a
// line, and the first has the exit code.
type mistakes []error

func (m mistakes) Error() string { return errors.Join(m...).Error() }

// report prints on stderr what failed, why and what to do, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if silent, ok := errors.AsType[silentExit](err); ok {
		return silent.code
	}
	if all, ok := errors.AsType[mistakes](err); ok {
		code := report(stderr, all[0])
		for _, err := range all[1:] {
			report(stderr, err)
		}
		return code
	}
	code, hint := classify(err)
	fmt.Fprintf(stderr, "doyen: %s\n", printable(err.Error()))
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", printable(hint))
	}
	return code
}

func classify(err error) (code int, hint string) {
	if e, ok := errors.AsType[*failure](err); ok && (e.code != 0 || e.hint != "") {
		return e.code, e.hint
	}
	if e, ok := errors.AsType[*client.UnreachableError](err); ok {
		return exitUnreachable, e.Hint
	}
	if e, ok := errors.AsType[*client.APIError](err); ok {
		return exitFailed, apiHint(e)
	}
	// The text of a configuration error says what to do already. It is one line, for the
	// journal of a service.
	if _, ok := errors.AsType[*settings.Error](err); ok {
		return exitConfig, ""
	}
	if errors.Is(err, context.Canceled) {
		return exitFailed, "interrupted before the agent answered"
	}
	return exitFailed, ""
}

// hinted gives an error with this code of the API a hint of its own.
func hinted(err error, code, hint string) error {
	if refused, ok := errors.AsType[*client.APIError](err); ok && refused.Code == code {
		return &failure{code: exitFailed, what: err.Error(), hint: hint}
	}
	return err
}

const seeKeys = "`doyen keys list` shows which agents have which key"

func apiHint(e *client.APIError) string {
	switch e.Code {
	case api.CodeBadRequest:
		return "" // the message says what would be right
	case api.CodeForbidden:
		if strings.Contains(e.Message, "--socket ") { // of the read-only socket, which names the other one
			return ""
		}
		if strings.Contains(e.Message, " not a voter") {
			return "`doyen voters` lists the voters"
		}
		return "run it as root or as a user that the message names; `access` in docs/operations.md explains each right"
	case api.CodeNotFound:
		if strings.HasPrefix(e.Message, "this API has nothing") {
			return "its version does not know this: upgrade the agent, and start it again: systemctl restart doyen"
		}
		return "`doyen elections` lists the elections, `doyen members` the agents, `doyen voters` the voters"
	case api.CodeNotLeader:
		return "run it on the host that leads, or on that of a voter, which passes it on: `doyen elections` shows who leads, `doyen voters` the voters"
	case api.CodeNotVoter:
		return "run it on the host of a voter: `doyen voters` lists them"
	case api.CodeNoCandidate:
		return "`doyen elections` lists the candidates; an agent that has priority 0, is draining or can't be reached can't take over"
	case api.CodeNoQuorum:
		return "`doyen voters` shows which ones are missing"
	case api.CodeInUse:
		return "`doyen keys list` shows the others"
	case api.CodeKeyMissing:
		return seeKeys
	case api.CodeNotConfirmed:
		return "`doyen voters` shows the outcome: check it before you try again"
	case api.CodeBusy, api.CodeUnavailable:
		if strings.Contains(e.Message, "`doyen ") {
			return "" // the message names the command that shows more, or takes it back
		}
		return "try again in a moment; `doyen status` shows warnings"
	}
	return "`doyen status` and the agent's log may show more"
}
