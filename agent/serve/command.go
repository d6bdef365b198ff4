package serve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// entered adds to the log and the history a change that a caller has asked for. It has to be called
// before `leave` and `restart` end this process. err is the outcome. A refused change is not added. A
// change whose outcome is not known is added, since it may have been made.
func (s *Server) entered(t api.Transition, err error) {
	if refused, ok := errors.AsType[*api.ErrorDetail](err); ok && refused.Code != api.CodeUnavailable && refused.Code != api.CodeNotConfirmed {
		return
	}
	if by := t.By; by != nil && s.Enter(t) {
		s.Logger.Info("asked for a change", "call", t.Reason[:strings.LastIndex(t.Reason, askedBy)], "uid", by.UID, "user", by.User, "pid", by.PID, "command", by.Command, "host", by.Host)
	}
}

// asker is the process that asks for a change, here or at the agent that forwards the call; nil: not known.
func (s *Server) asker(r *http.Request) *api.Caller {
	if f, ok := r.Context().Value(forwardedKey{}).(forwarded); ok {
		return callerOf(f.caller, s.Picture().Names.Of(f.from))
	}
	if k := caller(r); k != nil {
		return &api.Caller{UID: k.UID, User: access.UserName(k.UID), PID: k.PID, Command: processName(k.PID), Host: s.Name}
	}
	return nil
}

// entry is the history's entry for a request: who asks for the change, and who leads at that moment.
func (s *Server) entry(r *http.Request, right access.Right, values map[string]any) (t api.Transition) {
	by, now := s.asker(r), s.Clock()
	if by == nil {
		return t
	}
	who := fmt.Sprintf("uid %d, pid %d (%s)", by.UID, by.PID, cmp.Or(by.Command, "name unknown"))
	t = api.Transition{Time: time.Now().UTC(), Election: r.PathValue("name"), Type: api.ChangeCommand, By: by, BoottimeNS: int64(now),
		Admin:  right == access.Admin || !isForwarded(r) && s.may(r, access.Admin, "") == nil,
		Reason: commandText(r, values) + askedBy + by.User, Evidence: who + " on " + by.Host}
	if isForwarded(r) {
		t.Reason += " on " + by.Host
		t.Evidence = "forwarded by the agent " + by.Host + ", which reports: user " + by.User
		if by.UID != math.MaxUint32 {
			t.Evidence += ", " + who
		}
	}
	p := s.Picture()
	if c, ok := p.contest(election.Name(t.Election)); ok {
		e := p.Election(c, now, 0)
		t.Leader, t.Term = e.Leader, e.Term
	}
	return t
}

const askedBy = ", asked by "

// longestShown is the greatest length of a value that is shown of the call `keys`. Fingerprints are not longer,
// but keys are.
const longestShown = 16

// commandText names a call as an operator would: by the last word of its path, and the values in its
// body. It quotes each value that could be mistaken for other parts of the text. It shows no key.
func commandText(r *http.Request, values map[string]any) string {
	words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := words[len(words)-1]
	text := name
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := fmt.Sprint(values[key])
		if name == "keys" && len(value) > longestShown {
			value = "…"
		}
		text += " " + quoted(clip(key)) + "=" + quoted(clip(value))
	}
	return clip(text)
}

// quoted quotes a text that could be mistaken for several parts of a command.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return strings.ContainsRune(` ,="`, r) || !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// processName is the kernel's name of a process; empty: the process has ended, or is not on this host.
func processName(pid int32) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || pid <= 0 {
		return ""
	}
	return clip(strings.TrimSpace(string(text)))
}
