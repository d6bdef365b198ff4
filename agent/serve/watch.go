package serve

import (
	"cmp"
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
	watches *door.Places[uint32] // bounds the watches, by user
}

// watch streams the changes of an election as JSON lines, until the reader or the server ends it.
func (h watching) watch(w http.ResponseWriter, r *http.Request) {
	name, err := name(r) // an election that does not exist may get a candidate later
	after, bad := resumption(r)
	if err = cmp.Or(err, bad); err != nil {
		refuse(w, err)
		return
	}
	uid := userOf(r)
	if full := h.begin(uid, h.own(uid)); full != nil {
		refuse(w, full)
		return
	}
	defer h.watches.Leave(uid, 1)
	follower, err := h.Hub.Follow(string(name), after)
	if err != nil {
		refuse(w, err)
		return
	}
	defer follower.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	// The index is taken before the picture, so that changes in between are reported twice rather than
	// skipped. If the watch resumes, the snapshot has the index that the reader gave: the changes after
	// that index, which the reader missed, follow the snapshot.
	var news []*watch.Change
	index := after
	if after == 0 {
		index = h.Hub.Index(string(name))
	} else {
		news = h.taken(name, follower)
	}
	if len(news) == 0 || news[0].Type != api.ChangeLagged {
		news = append([]*watch.Change{h.snapshot(name, api.ChangeSnapshot, index, 0)}, news...)
	}
	for sendLines(w, news) == nil && follower.Wait(r.Context()) {
		news = h.taken(name, follower)
	}
}

// resumption reads after=INDEX. Index 0 means a watch that does not resume.
func resumption(r *http.Request) (after uint64, err error) {
	if given := r.URL.Query().Get("after"); given != "" {
		if after, err = strconv.ParseUint(given, 10, 64); err != nil {
			err = badRequest("after must be the index of a change, an integer")
		}
	}
	return after, err
}

// taken returns the changes that wait for a follower. If some were lost, it returns a fresh
// snapshot instead, which reports how many.
func (h watching) taken(name election.Name, f *watch.Follower) []*watch.Change {
	changes, missed, index := f.Take()
	if missed > 0 {
		return []*watch.Change{h.snapshot(name, api.ChangeLagged, index, missed)}
	}
	return changes
}

// snapshot is a line that shows the whole election as it is now.
func (h watching) snapshot(name election.Name, kind string, index, missed uint64) *watch.Change {
	c := &watch.Change{Change: h.Picture().Line(kind, name, h.Clock(), index)}
	c.Missed = missed
	return c
}

// sendLines writes all lines that wait at once, under one deadline for them: a reader that does
// not read by then is cut off.
func sendLines(w http.ResponseWriter, changes []*watch.Change) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	for _, c := range changes {
		line, err := c.Line()
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			return err
		}
	}
	return control.Flush()
}
