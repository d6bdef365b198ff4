package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// The exit codes. The help of each command explains 1 and 2: for is-leader, 1 means that another agent leads.
// For is-leader and leader, 2 means that none leads. For resign and transfer, 1 means refused.
const (
	exitOK          = 0
	exitFailed      = 1
	exitNone        = 2
	exitUnreachable = 3
	exitUsage       = 64 // EX_USAGE of sysexits.h
	exitConfig      = 78 // EX_CONFIG
)

// silentExit is an outcome without a message: only the exit code shows it.
type silentExit struct{ code int }

func (e silentExit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// failure is an error with its exit code and a hint what to do.
type failure struct {
	code int
	what string
	err  error // the cause; may be nil
	hint string
}

func (e *failure) Error() string {
	if e.err == nil {
		return e.what
	}
	return e.what + ": " + e.err.Error()
}

func (e *failure) Unwrap() error { return e.err }

// usage returns the error for a command line that can't be understood.
func usage(hint, format string, args ...any) error {
	return &failure{code: exitUsage, what: fmt.Sprintf(format, args...), hint: hint}
}

// report prints on stderr what failed, why and what to do, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if silent, ok := errors.AsType[silentExit](err); ok {
		return silent.code
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
	// The text of a configuration error already contains what to do. It is one line, for the journal of a
	// service.
	if _, ok := errors.AsType[*settings.Error](err); ok {
		return exitConfig, ""
	}
	if errors.Is(err, context.Canceled) {
		return exitFailed, "interrupted before the agent answered"
	}
	return exitFailed, ""
}

// refused reports whether err is a refusal by the agent with one of these codes.
func refused(err error, codes ...string) bool {
	e, ok := errors.AsType[*client.APIError](err)
	return ok && slices.Contains(codes, e.Code)
}

// hinted replaces the hint of err if err is a refusal with this code.
func hinted(err error, code, hint string) error {
	if refused(err, code) {
		return &failure{code: exitFailed, what: err.Error(), hint: hint}
	}
	return err
}

const seeKeys = "`doyen keys list` shows which agents have which key"

func apiHint(e *client.APIError) string {
	hint := map[string]string{
		api.CodeForbidden:    "run it as root or as a user that the message names; `access` in docs/operations.md explains each right",
		api.CodeNotFound:     "`doyen elections` lists the elections, `doyen members` the agents, `doyen voters` the voters",
		api.CodeNotLeader:    "run it on the host that leads, or on that of a voter, which passes it on: `doyen elections` shows who leads, `doyen voters` the voters",
		api.CodeNotVoter:     "run it on the host of a voter: `doyen voters` lists them",
		api.CodeNoCandidate:  "`doyen elections` lists the candidates; an agent that has priority 0, is draining or can't be reached can't take over",
		api.CodeNoQuorum:     "`doyen voters` shows which ones are missing",
		api.CodeInUse:        "`doyen keys list` shows the others",
		api.CodeKeyMissing:   seeKeys,
		api.CodeNotConfirmed: "`doyen voters` shows the outcome: check it before you try again",
		api.CodeBusy:         "try again in a moment; `doyen status` shows warnings",
		api.CodeUnavailable:  "try again in a moment; `doyen status` shows warnings",
	}[e.Code]
	has := func(words string) bool { return strings.Contains(e.Message, words) }
	switch {
	case e.Code == api.CodeBadRequest,
		e.Code == api.CodeForbidden && has("--socket "), // the read-only socket's text already names the other socket
		(e.Code == api.CodeBusy || e.Code == api.CodeUnavailable) && has("`doyen "):
		return "" // the message already contains what to do
	case e.Code == api.CodeForbidden && has(" not a voter"):
		return "`doyen voters` lists the voters"
	case e.Code == api.CodeNotFound && has("this API has nothing"):
		return "its version does not know this: upgrade the agent, and start it again: systemctl restart doyen"
	}
	return cmp.Or(hint, "`doyen status` and the agent's log may show more")
}
