package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// entered has a change that somebody asks for in the log and in the history, before it is made:
// `leave` and `restart` end this process. A body that is not valid JSON is left to the handler,
// which refuses it.
func (s *Server) entered(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body) // in memory already, see receive
		r.Body = io.NopCloser(bytes.NewReader(data))
		values := map[string]any{}
		if p, ok := caller(r); ok && (len(data) == 0 || json.Unmarshal(data, &values) == nil) {
			s.enter(p, r, values)
		}
		h(w, r)
	}
}

func (s *Server) enter(k peer, r *http.Request, values map[string]any) {
	by := &api.Caller{UID: k.UID, User: userName(k.UID), PID: k.pid, Command: processName(k.pid), Host: s.Name}
	what := commandText(r, values)
	s.Logger.Info("asked for a change", "call", what, "uid", by.UID, "user", by.User, "pid", by.PID, "command", by.Command, "host", by.Host)
	if s.Enter == nil {
		return
	}
	now := s.Clock()
	t := api.Transition{Time: time.Now().UTC(), Election: r.PathValue("name"), Type: api.ChangeCommand, By: by, BoottimeNS: int64(now),
		Reason:   what + ", asked by " + by.User,
		Evidence: fmt.Sprintf("uid %d, pid %d (%s) on %s", by.UID, by.PID, cmp.Or(by.Command, "name unknown"), by.Host)}
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
