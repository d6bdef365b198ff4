package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// entered has a change that somebody asks for in the log and in the history, before it is made:
// `leave` and `restart` end this process. A body that is not valid JSON is left to order, which
// refuses it.
func (s *Server) entered(r *http.Request, body []byte) {
	values := map[string]any{}
	if len(body) == 0 || json.Unmarshal(body, &values) == nil {
		s.enter(r, values)
	}
}

// asker is who asks for a change, here or at the agent that forwards the call; nil: not known.
func (s *Server) asker(r *http.Request) *api.Caller {
	if f, ok := r.Context().Value(forwardedKey{}).(forwarded); ok {
		return callerOf(f.caller, s.Picture().name(f.from))
	}
	if k, ok := caller(r); ok {
		return &api.Caller{UID: k.UID, User: access.UserName(k.UID), PID: k.PID, Command: processName(k.PID), Host: s.Name}
	}
	return nil
}

func (s *Server) enter(r *http.Request, values map[string]any) {
	by, what := s.asker(r), commandText(r, values)
	if by == nil {
		return
	}
	s.Logger.Info("asked for a change", "call", what, "uid", by.UID, "user", by.User, "pid", by.PID, "command", by.Command, "host", by.Host)
	now := s.Clock()
	who := fmt.Sprintf("uid %d, pid %d (%s)", by.UID, by.PID, cmp.Or(by.Command, "name unknown"))
	t := api.Transition{Time: time.Now().UTC(), Election: r.PathValue("name"), Type: api.ChangeCommand, By: by, BoottimeNS: int64(now),
		Reason: what + ", asked by " + by.User, Evidence: who + " on " + by.Host}
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
	s.Enter(t)
}

// longestShown bounds a value of the call `keys` that is shown: a fingerprint is as long, a key
// is longer.
const longestShown = 16

// commandText names a call as an operator would: by the last word of its path, and the values in
// its body. It shows no key.
func commandText(r *http.Request, values map[string]any) string {
	words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := words[len(words)-1]
	text := name
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := strings.Trim(strconv.Quote(fmt.Sprint(values[key])), `"`)
		if name == "keys" && len(value) > longestShown {
			value = "…"
		}
		text += " " + clip(key) + "=" + clip(value)
	}
	return clip(text)
}

// processName is how the kernel names a process; empty: it is gone, or not of this host.
func processName(pid int32) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || pid <= 0 {
		return ""
	}
	return clip(strings.TrimSpace(string(text)))
}
