package agent

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// The codes of the agent's own warnings; the elector has more. All are stable
// and listed in docs/operations.md.
const (
	warnNameConflict = "name_conflict"  // two agents have one name
	warnIdentity     = "same_identity"  // two agents have one identity
	warnRefused      = "refused_member" // this agent lets another one not in
	warnRefusedSelf  = "refused_self"   // the others let this agent not in
	warnRefusedPeer  = "refused_peer"   // a direct connection is refused
	warnDisk         = "disk_failing"
)

// maxRefused bounds the refusals of direct connections that are kept.
const maxRefused = 64

// warnings gathers what an operator should mend, from every part of the agent,
// and logs each once. It belongs to the loop.
type warnings struct {
	logger  *slog.Logger
	members []elector.Warning // from the newest view
	refused map[election.PeerID]elector.Warning
	dirty   bool

	core    []elector.Warning // as of the last update
	problem string
	current []api.Warning // sorted by code; replaced, never changed
}

func newWarnings(logger *slog.Logger) warnings {
	return warnings{logger: logger, refused: map[election.PeerID]elector.Warning{}, current: []api.Warning{}}
}

// viewed takes who is refused by gossip, and forgets peers that are gone.
func (w *warnings) viewed(v membership.View) {
	w.dirty = true
	w.members = nil
	for _, r := range v.Refused {
		w.members = append(w.members, elector.Warning{Code: refusalCode(r), Message: refusalText(r)})
	}
	for id := range w.refused {
		if !slices.ContainsFunc(v.Members, func(m membership.Member) bool { return m.Peer == id }) {
			delete(w.refused, id)
		}
	}
}

func refusalCode(r membership.Refusal) string {
	switch {
	case r.Cause == membership.CauseName:
		return warnNameConflict
	case r.Cause == membership.CauseIdentity:
		return warnIdentity
	case r.Self:
		return warnRefusedSelf
	}
	return warnRefused
}

func refusalText(r membership.Refusal) string {
	who := cmp.Or(r.Name, "an agent")
	if r.Addr.IsValid() {
		at := r.Addr.String()
		if r.Addr.Port() == 0 {
			at = r.Addr.Addr().String()
		}
		who += " at " + at
	}
	if r.Self {
		return fmt.Sprintf("this agent is refused by %s: %v", who, r.Err)
	}
	return fmt.Sprintf("%s is refused: %v", who, r.Err)
}

// refuse takes a direct connection that one side would not have.
func (w *warnings) refuse(r transport.Refused) {
	if _, known := w.refused[r.Peer]; !known && len(w.refused) >= maxRefused {
		return
	}
	who := cmp.Or(r.Name, string(r.Peer))
	text := fmt.Sprintf("%s at %s is refused: %v", who, r.Addr, r.Err)
	if r.ByPeer {
		text = fmt.Sprintf("this agent is refused by %s at %s: %v", who, r.Addr, r.Err)
	}
	w.refused[r.Peer] = elector.Warning{Code: warnRefusedPeer, Message: text}
	w.dirty = true
}

// unrefuse takes a connection that came about.
func (w *warnings) unrefuse(p election.PeerID) {
	if _, known := w.refused[p]; known {
		delete(w.refused, p)
		w.dirty = true
	}
}

// update takes the elector's warnings and what is wrong with the disk, and
// returns everything that stands. What did not change costs a comparison.
func (w *warnings) update(core []elector.Warning, problem string) []api.Warning {
	if !w.dirty && problem == w.problem && slices.Equal(core, w.core) {
		return w.current
	}
	w.dirty, w.core, w.problem = false, core, problem
	all := slices.Concat(core, w.members)
	for _, r := range w.refused {
		all = append(all, r)
	}
	for i := range all {
		if all[i].Code == warnDisk && problem != "" {
			all[i].Message += " (" + problem + ")"
		}
	}
	slices.SortFunc(all, func(a, b elector.Warning) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Message, b.Message))
	})
	w.replace(slices.Compact(all))
	return w.current
}

// replace logs what is new and what is over, and keeps since when the rest is.
func (w *warnings) replace(all []elector.Warning) {
	next := make([]api.Warning, 0, len(all))
	for _, a := range all {
		entry := api.Warning{Code: a.Code, Message: a.Message, Since: time.Now().UTC()}
		same := func(o api.Warning) bool { return o.Code == a.Code && o.Message == a.Message }
		if i := slices.IndexFunc(w.current, same); i >= 0 {
			entry.Since = w.current[i].Since
		} else {
			w.logger.Warn(a.Message, "code", a.Code)
		}
		next = append(next, entry)
	}
	for _, old := range w.current {
		if !slices.ContainsFunc(next, func(n api.Warning) bool { return n.Code == old.Code }) {
			w.logger.Info("warning is over", "code", old.Code, "lasted", time.Since(old.Since).Round(time.Millisecond))
		}
	}
	w.current = next
}
