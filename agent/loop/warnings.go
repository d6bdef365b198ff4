package loop

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

// The codes of the agent's own warnings, and those of the elector that this package treats separately. All are
// stable and listed in docs/operations.md.
const (
	warnNameConflict = "name_conflict"  // two agents have one name
	warnIdentity     = "same_identity"  // two agents have one identity
	warnRefused      = "refused_member" // this agent does not accept another one as a member
	warnNoise        = "gossip_noise"   // datagrams arrive that no agent of this cluster sent
	warnJoin         = "join_failing"   // no address of --join answers, and this agent is alone
	warnRefusedPeer  = "refused_peer"   // a direct connection is refused
	warnRenamed      = "renamed"        // the roster knows this agent by another name
	warnDisk         = "disk_failing"
	warnFormation    = "formation"          // from the elector: no first roster exists yet
	warnQuorum       = "quorum_lost"        // from the elector: nobody can lead
	warnHookFailed   = "hook_failed"        // a hook failed at the start of a leadership
	warnActMissing   = "act_missing"        // a hook or check is configured, and doyen act is not connected
	warnUnhealthy    = "check_failed"       // a check keeps this host from being a candidate
	warnPages        = "lease_page"         // a lease page is missing
	warnNoRecord     = "no_record"          // there is no record for the next life
	warnShared       = "data_dir_shared"    // another process writes to this agent's data directory
	warnCandidates   = "no_candidates"      // an expected election has no candidates
	warnDrained      = "drained"            // this agent has been drained for a day
	warnGossip       = "gossip_blocked"     // gossip does not reach a member whose direct connection works
	warnUnsendable   = "unsendable_message" // this agent made a message that it may not send
	warnJobUnknown   = "job_unknown"        // nobody knows how a job's newest run ended
	warnDiffer       = "settings_differ"    // this agent's configuration and the roster have different settings
)

// formationGrace is how long the first roster may take to form before a warning is logged. Many agents that start
// at once on a busy machine need some seconds.
const formationGrace = 10 * time.Second

// maxRefused is how many refusals of direct connections are kept.
const maxRefused = 64

// warnings collects, from every part of the agent, what an operator should repair, and logs
// each warning once. It belongs to the loop.
//
// The elector's warnings come and go within milliseconds while a cluster forms or a voter
// reconnects. So most of them are logged only after they have lasted for a lease (graceOf).
// Answers show them from the first moment.
type warnings struct {
	grace   time.Duration
	logger  *slog.Logger
	members []api.Warning // from the newest view
	renamed []api.Warning // one at most
	refused map[election.PeerID]api.Warning

	current []api.Warning         // sorted by urgency and code; replaced by a new slice, never changed
	begun   map[api.Warning]begun // by warning in force; in the key, Since is not set
	dueAt   election.Instant      // when update must compute the warnings again; Never: not needed
}

// begun is when a warning started, when it is due to be logged, and whether it was logged.
type begun struct {
	since  time.Time
	at     election.Instant
	due    election.Instant
	logged bool
}

// viewed records the members that gossip refuses, and forgets peers that have left.
func (w *warnings) viewed(v membership.View) {
	w.members = each.Of(v.Refused, func(r membership.Refusal) api.Warning {
		return api.Warning{Code: refusalCode(r), Message: refusalText(r)}
	})
	for id := range w.refused {
		if !slices.ContainsFunc(v.Members, func(m membership.Member) bool { return m.Peer == id }) {
			delete(w.refused, id)
		}
	}
}

// adopted warns if this agent's name differs from its name in the roster. The roster keeps the
// names that voters had when they were added.
func (w *warnings) adopted(self election.PeerID, name string, r *election.Roster) {
	w.renamed = nil
	for _, v := range r.All() {
		if v.Peer == self && v.Name != name {
			w.renamed = []api.Warning{{Code: warnRenamed, Message: fmt.Sprintf(
				"the roster calls this agent %s, but it runs as %s: start it with --name %s, or with another --data-dir if it is meant to be another agent", v.Name, name, v.Name)}}
		}
	}
}

func refusalCode(r membership.Refusal) string {
	return cmp.Or(map[membership.Cause]string{
		membership.CauseSeed: warnJoin, membership.CauseName: warnNameConflict,
		membership.CauseIdentity: warnIdentity, membership.CauseNoise: warnNoise,
	}[r.Cause], warnRefused)
}

// sharedIdentity describes another running agent with this agent's identity; empty: there is none.
// The two would vote as one voter, so this agent must not vote.
func sharedIdentity(v membership.View) string {
	for _, r := range v.Refused {
		if r.Self && r.Cause == membership.CauseIdentity {
			return fmt.Sprintf("%v This agent grants no votes and leads nothing until its next start: stop the other one, delete its data directory, then start this one again", r.Err)
		}
	}
	return ""
}

func refusalText(r membership.Refusal) string {
	if r.Cause == membership.CauseSeed {
		return fmt.Sprintf("--join %s: %v; trying again", r.Name, r.Err)
	}
	if r.Cause == membership.CauseNoise {
		return r.Err.Error()
	}
	who := cmp.Or(r.Name, "an agent")
	if r.Addr.IsValid() {
		at := r.Addr.String()
		if r.Addr.Port() == 0 {
			at = r.Addr.Addr().String()
		}
		who += " at " + at
	}
	if r.Self {
		return fmt.Sprintf("%s refuses this agent: %v", who, r.Err)
	}
	return fmt.Sprintf("this agent refuses %s: %v", who, r.Err)
}

// otherWarnings returns the elector's warnings, and those about the record, lease pages, messages that can't be
// sent, different settings, a long drain, candidates, hooks, checks, jobs and gossip.
func (l *Loop) otherWarnings(now election.Instant, status *elector.Status) []api.Warning {
	all := words.Warnings(status, l.Name, l.liveNamed)
	all = append(all, slices.DeleteFunc([]api.Warning{
		{Code: warnNoRecord, Message: cmp.Or(l.NoRecord, l.Record.Problem(now))},
		{Code: warnPages, Message: l.Pages.Problem()},
		{Code: warnUnsendable, Message: l.Network.Unsendable()},
		{Code: warnDiffer, Message: words.Differing(l.Given, status.Roster)},
	}, func(w api.Warning) bool { return w.Message == "" })...)
	all = append(all, l.candidacyWarnings(status)...)
	all = append(all, l.actingWarnings()...)
	all = append(all, l.jobs.warnings()...)
	return append(all, l.presence.warnings(now)...)
}

// liveNamed returns the ID and the address of the live agent that has the name.
func (p *peers) liveNamed(name string) (id, addr string) {
	if m, live := each.First(p.view.Members, func(m membership.Member) bool { return m.Name == name }); live {
		return string(m.Peer), m.GossipAddr.String()
	}
	return "ID", "its address"
}

// refuse records a direct connection that one side refused.
func (w *warnings) refuse(r transport.Refused) {
	if _, known := w.refused[r.Peer]; !known && len(w.refused) >= maxRefused {
		return
	}
	who := cmp.Or(r.Name, string(r.Peer))
	text := fmt.Sprintf("this agent refuses %s at %s: %v", who, r.Addr, r.Err)
	if r.ByPeer {
		text = fmt.Sprintf("%s at %s refuses this agent: %v", who, r.Addr, r.Err)
	}
	w.refused[r.Peer] = api.Warning{Code: warnRefusedPeer, Message: text}
}

// update returns all warnings in force. core are those of the elector and the other parts, and
// problem is what is wrong with the disk. If nothing has changed, update only compares.
func (w *warnings) update(now election.Instant, core []api.Warning, problem string) []api.Warning {
	all := slices.Concat(core, w.members, w.renamed, slices.Collect(maps.Values(w.refused)))
	for i := range all {
		if all[i].Code == warnDisk && problem != "" {
			all[i].Message += " (" + problem + ")"
		}
	}
	slices.SortFunc(all, func(a, b api.Warning) int {
		return cmp.Or(urgency(a)-urgency(b), strings.Compare(a.Code, b.Code), strings.Compare(a.Message, b.Message))
	})
	all = slices.Compact(all)
	same := func(a, b api.Warning) bool { return a.Code == b.Code && a.Message == b.Message }
	if now >= w.dueAt || !slices.EqualFunc(all, w.current, same) {
		w.replace(now, core, all)
	}
	return w.current
}

// urgency puts a warning first if nobody can lead until it ends.
func urgency(w api.Warning) int {
	if w.Code == warnQuorum {
		return 0
	}
	return 1
}

// replace logs the warnings that are now due or have ended, and remembers when each one started.
func (w *warnings) replace(now election.Instant, core, all []api.Warning) {
	next, kept := make([]api.Warning, len(all)), make(map[api.Warning]begun, len(all))
	w.dueAt = election.Never
	for i, a := range all {
		b, old := w.begun[a]
		if !old {
			b = begun{since: time.Now().UTC(), at: now, due: now.Add(w.graceOf(core, a))}
		}
		switch {
		case b.logged:
		case now >= b.due:
			b.logged = true
			w.logger.Warn(a.Message, "code", a.Code)
		default:
			w.dueAt = min(w.dueAt, b.due)
		}
		kept[a] = b
		next[i] = api.Warning{Code: a.Code, Message: a.Message, Since: b.since}
	}
	for old, b := range w.begun {
		if b.logged && !slices.ContainsFunc(all, func(a api.Warning) bool { return a.Code == old.Code }) {
			w.logger.Info("warning ended", "code", old.Code, "lasted", now.Sub(b.at).Round(time.Millisecond))
		}
	}
	w.current, w.begun = next, kept
}

// graceOf is how long a warning must last before it is logged.
func (w *warnings) graceOf(core []api.Warning, a api.Warning) time.Duration {
	switch {
	case a.Code == warnFormation:
		return formationGrace
	case slices.Contains(core, a) && a.Code != warnDisk:
		return w.grace
	}
	return 0
}

// drainedLong is how long a drain may last before there is a warning: it was probably forgotten.
const drainedLong = 24 * time.Hour

// candidacyWarnings returns warnings about a long drain and about expected elections without
// candidates. Without a quorum it skips those about candidates: nobody can lead then, which has its own warning.
func (l *Loop) candidacyWarnings(s *elector.Status) (all []api.Warning) {
	if s.Draining && !l.drainedAt.IsZero() && time.Since(l.drainedAt) >= drainedLong {
		all = append(all, api.Warning{Code: warnDrained, Message: fmt.Sprintf(
			"this agent has been drained since %s and can't be elected: if the maintenance has ended, run doyen drain off", l.drainedAt.UTC().Format("2006-01-02 15:04 UTC"))})
	}
	if s.Quorum.Enabled && !s.Quorum.Exists {
		return all
	}
	for _, name := range l.Expected {
		if c, _ := serve.ContestOf(s, name); len(c.Candidates) == 0 {
			all = append(all, api.Warning{Code: warnCandidates, Message: fmt.Sprintf(
				"nobody is a candidate in %s, which this agent's configuration expects: start an agent or a program that may lead it, or end a drain (`doyen members` shows who is drained)", name)})
		}
	}
	return all
}
