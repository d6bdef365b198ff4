package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

type watching struct {
	*Config
	watches *door.Places[uint32] // by user
}

// watch streams the changes of an election as JSON lines, until the reader or the server ends it.
func (h watching) watch(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	if !ok {
		return
	}
	if _, exists := h.Picture().contest(name); !exists {
		unknownElection(w, name)
		return
	}
	after, resume, ok := resumption(w, r)
	if !ok {
		return
	}
	p, _ := caller(r)
	if full := h.begin(p.UID, h.own(p.UID)); full != nil {
		refuse(w, full)
		return
	}
	defer h.watches.Leave(p.UID, 1)
	follower, err := h.Hub.Follow(string(name), after, resume)
	if err != nil {
		code := api.CodeUnavailable
		if errors.Is(err, watch.ErrFull) {
			code = api.CodeBusy
		}
		fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: code, Message: err.Error()})
		return
	}
	defer follower.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	out := &lines{w: w, control: http.NewResponseController(w)}
	if resume {
		err = h.resumed(out, name, follower, after)
	} else {
		// The index is taken before the picture, so that changes in between are reported twice and
		// not skipped.
		err = out.send(h.snapshot(name, api.ChangeSnapshot, h.Hub.Index(string(name)), 0))
	}
	if err == nil {
		h.stream(out, r, name, follower)
	}
}

// resumption reads after=INDEX. If that is not an index, it answers and returns false. Index 0
// resumes nothing.
func resumption(w http.ResponseWriter, r *http.Request) (after uint64, resume, ok bool) {
	given := r.URL.Query().Get("after")
	if given == "" {
		return 0, false, true
	}
	after, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		badRequest(w, "after must be the index of a change, an integer")
		return 0, false, false
	}
	return after, after > 0, true
}

// resumed starts a watch after an index. It first sends the present state, under the index
// that the reader has, and then the changes that the reader missed, the oldest first. If those
// are no longer kept, the first line reports that.
func (h watching) resumed(out *lines, name election.Name, f *watch.Follower, after uint64) error {
	changes, missed, index := f.Take()
	if missed > 0 {
		return out.send(h.snapshot(name, api.ChangeLagged, index, missed))
	}
	if err := out.send(h.snapshot(name, api.ChangeSnapshot, after, 0)); err != nil {
		return err
	}
	return out.sendAll(changes)
}

func (h watching) stream(out *lines, r *http.Request, name election.Name, f *watch.Follower) {
	for {
		select {
		case _, open := <-f.Ready():
			if !open {
				return
			}
		case <-r.Context().Done():
			return
		}
		changes, missed, index := f.Take()
		if missed > 0 && out.send(h.snapshot(name, api.ChangeLagged, index, missed)) != nil {
			return
		}
		if out.sendAll(changes) != nil {
			return
		}
	}
}

// snapshot is a line that carries the whole election.
func (h watching) snapshot(name election.Name, kind string, index, missed uint64) api.Change {
	p := h.Picture()
	c, _ := p.contest(name)
	now := h.Clock()
	e := p.Election(c, now, index)
	return api.Change{
		Index: index, Time: time.Now().UTC(), Type: kind, Election: string(name),
		Leader: e.Leader, IsLeader: e.IsLeader, Term: e.Term,
		BoottimeNS: int64(now), Snapshot: &e, Missed: missed,
	}
}

// lines writes JSON lines. All lines that wait are written at once, under their own deadline:
// a reader that does not read for so long is cut off.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (l *lines) send(c api.Change) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return l.write(append(data, '\n'))
}

// sendAll writes what waits in one go.
func (l *lines) sendAll(changes []*watch.Change) error {
	var all [][]byte
	for _, c := range changes {
		line, err := c.Line()
		if err != nil {
			return err
		}
		all = append(all, line)
	}
	return l.write(all...)
}

func (l *lines) write(all ...[]byte) error {
	if len(all) == 0 {
		return nil
	}
	if err := l.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	for _, line := range all {
		if _, err := l.w.Write(line); err != nil {
			return err
		}
	}
	return l.control.Flush()
}
