package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
)

const maxMeta = election.MaxMeta

// Campaigns is where programs become candidates. Its methods wait only for the agent's loop,
// and its errors are *api.ErrorDetail.
type Campaigns interface {
	// Stand starts a candidacy, which lasts until End.
	Stand(actors.Request) (*actors.Candidacy, error)
	// Resume restores the candidacy that a program had in an earlier process run of the agent.
	Resume(actors.Resumption) (*actors.Candidacy, error)
	// End ends a candidacy. waits reports whether its program may still act. If so, until is the program's
	// deadline: after that, a proof that the program has ended is not needed any more.
	End(id string) (until election.Instant, waits bool)
	// Gone records the proof that the program of an ended candidacy has ended.
	Gone(id string)
	// Receipt takes a program's report that it has stopped acting under the term; term 0: the
	// oldest term without a receipt. why is the reason of a program that was not asked to stop.
	// authorized reports whether the caller may report this for the programs of a user.
	Receipt(id string, name election.Name, term election.Term, why election.Reason, authorized func(uid uint32) bool) error
	// Acts returns the election in which the program may still act under that term.
	Acts(id string, term election.Term, authorized func(uid uint32) bool) (election.Name, error)
	// Report takes what a companion reports about itself.
	Report(id string, c api.Companion, authorized func(uid uint32) bool) error
	// Campaigns describes the programs that are candidates.
	Campaigns() []api.Campaign
}

// candidacies are the connections of programs and companions.
type candidacies struct {
	*Config
	ctx       context.Context // when ctx ends, the connections are closed
	streams   *streams
	attention time.Duration        // how long a program may leave lines of its stream unread
	otherTime func(pid int32) bool // whether the process has another CLOCK_BOOTTIME than the agent
	unproven  sync.Once            // so that the agent logs only once that it can't prove the end of programs
}

// campaign accepts a program's candidacy, and makes the connection its stream.
func (h *candidacies) campaign(c *call[api.CampaignRequest]) (any, error) {
	if c.body.Role == api.RoleCompanion {
		return h.join(c)
	}
	name, err := name(c.Request)
	if err = cmp.Or(err, h.may(c.Request, access.Campaign, string(name)), implausible(c.body)); err != nil {
		return nil, err
	}
	p := caller(c.Request) // known, since the caller is authorized
	ceiling, err := h.ceiling(p, name, c.body.Priority)
	if err != nil {
		return nil, err
	}
	return nil, h.carry(c.w, c.Request, func(t *stream) (err error) {
		if c.body.Proof == nil || *c.body.Proof { // before Stand, while the process that has just asked still lives
			h.attend(t)
		}
		t.k, err = h.Campaigns.Stand(actors.Request{
			Election: name, Priority: c.body.Priority, MaxPriority: ceiling, Meta: c.body.Meta, UID: p.UID, Own: h.own(p.UID), PID: p.PID,
			Program: proof.Identify(t.unix, int64(t.accepted), t.process != nil),
		})
		return err
	})
}

// carry makes the connection a candidacy's stream. begin starts that candidacy and adds it to the stream.
func (h *candidacies) carry(w http.ResponseWriter, r *http.Request, begin func(*stream) error) error {
	if h.otherTime(caller(r).PID) {
		return badRequest("this program is in another time namespace than the agent: " +
			"it would compare deadlines with a different clock; run it in the host's time namespace, or run an agent in its own")
	}
	place := placeOf(r)
	conn, ok := place.Conn.(*net.UnixConn)
	if !ok || !h.streams.begin() {
		return errors.New("the agent stops")
	}
	defer h.streams.running.Done()
	w.Header().Set("Connection", "close") // a refused program's connection closes, and its place is free for others
	t := &stream{of: h, unix: conn, accepted: place.Accepted}
	defer func() {
		if t.process != nil {
			t.process.Close()
		}
	}()
	if err := begin(t); err != nil {
		return err
	}
	return t.run(w)
}

// attend watches for the end of the process that connected. The end is a proof only if the given
// sockets, of the program's other connections, are closed by then too.
func (h *candidacies) attend(t *stream, sockets ...uint64) {
	var err error
	if t.process, err = proof.Of(t.unix, int64(t.accepted), sockets...); err != nil { // then t.process is nil
		h.unproven.Do(func() {
			h.Logger.Info("this host can't prove that a program has ended: its successor waits for its receipt, or for the end of the lease; not logged again", "err", err)
		})
	}
}

// resume restores the candidacy that a program had in an earlier process run.
func (h *candidacies) resume(c *call[api.ResumeRequest]) (any, error) {
	if err := implausible(api.CampaignRequest{Meta: c.body.Meta}); err != nil {
		return nil, err
	}
	p := caller(c.Request)
	return nil, h.carry(c.w, c.Request, func(t *stream) (err error) {
		t.k, err = h.Campaigns.Resume(actors.Resumption{
			ID: c.PathValue("id"), Term: election.Term(c.body.Term), Meta: c.body.Meta, UID: p.UID, Own: h.own(p.UID),
			Program: proof.Identify(t.unix, int64(t.accepted), true), Held: proof.Held,
			May: func(name election.Name) error { return h.Access.May(p.Who, access.Campaign, string(name)) },
			Ceiling: func(name election.Name) *int {
				highest, _ := h.ceiling(p, name, nil)
				return highest
			},
		})
		if err != nil {
			return err
		}
		if sockets, provable := t.k.Sockets(); provable {
			h.attend(t, sockets...)
		}
		return nil
	})
}

// implausible returns what is wrong with a request.
func implausible(r api.CampaignRequest) error {
	switch {
	case len(r.Meta) > maxMeta:
		return badRequest(fmt.Sprintf(`"meta" has %d bytes, at most %d are allowed`, len(r.Meta), maxMeta))
	case !utf8.ValidString(r.Meta):
		return badRequest(`"meta" is not UTF-8 text`)
	case r.Role != "" && r.Role != api.RoleCandidate && r.Role != api.RoleCompanion:
		return badRequest(fmt.Sprintf(`"role" is %q; it must be %q or %q`, health.Line(r.Role), api.RoleCandidate, api.RoleCompanion))
	case r.Companion != nil && r.Role != api.RoleCompanion:
		return badRequest(fmt.Sprintf(`"companion" goes with the role %q`, api.RoleCompanion))
	case r.Role == api.RoleCompanion && (r.Priority != nil || r.Proof != nil):
		return badRequest(`a companion is never a candidate, and its end proves nothing: "priority" and "proof" are not for it`)
	case r.Priority != nil && (*r.Priority < 0 || *r.Priority > election.MaxPriority):
		return badRequest(fmt.Sprintf(`"priority" is %d; it must be between 0 and %d`, *r.Priority, election.MaxPriority))
	}
	return nil
}

// ceiling returns the highest priority that the program may have; nil: it may have any. It returns an
// error if the program has asked for more.
func (h *candidacies) ceiling(p *socket.Peer, name election.Name, asked *int) (*int, error) {
	highest, bounded := h.Access.MaxPriority(p.Who, string(name))
	if !bounded {
		return nil, nil
	}
	if asked != nil && *asked > highest {
		return nil, refusal(api.CodeForbidden, fmt.Sprintf(
			"priority %d is above %d, the highest that user %s may have in %s: ask for less, or ask an administrator to raise `%s` in the agent's configuration file",
			*asked, highest, access.UserName(p.UID), name, h.Access.PriorityKey(string(name))))
	}
	return &highest, nil
}

// campaigns lists the candidates of this host. It shows a campaign's ID only to callers that
// may give the receipt of that campaign.
func (h *candidacies) campaigns(r *http.Request) (any, error) {
	p := caller(r)
	all := h.Campaigns.Campaigns()
	for i := range all {
		if p == nil || h.Access == nil || !h.Access.Owns(p.Who, uint32(all[i].UID)) {
			all[i].Campaign = ""
		}
	}
	return api.Campaigns{Campaigns: all}, nil
}

func (h *candidacies) receipt(c *call[api.StoppedRequest]) (any, error) {
	return &api.Outcome{Done: true}, h.Campaigns.Receipt(c.PathValue("id"), election.Name(c.body.Election), election.Term(c.body.Term),
		election.Reason(health.Line(c.body.Reason)), h.authorized(c.Request))
}

// authorized returns a function that reports whether the caller may report for a user's programs.
func (h *candidacies) authorized(r *http.Request) func(uid uint32) bool {
	p := caller(r)
	return func(uid uint32) bool { return p.UID == uid || h.Access.Own(p.UID) }
}

// A companion's elections, checks and failures together may be three times maxOfCompanion.
const maxOfCompanion = election.MaxElections

// join makes the connection the stream of a companion. A companion is not a candidate and needs no right
// to campaign. But its reports decide whether this host may lead, so only few users may run a companion.
func (h *candidacies) join(q *call[api.CampaignRequest]) (any, error) {
	c := cmp.Or(q.body.Companion, &api.Companion{Elections: []string{string(q.election)}})
	if err := cmp.Or(unacceptable(string(q.election), *c), implausible(q.body)); err != nil {
		return nil, err
	}
	p := caller(q.Request)
	if !h.Access.Own(p.UID) && (h.ActUser == nil || p.UID != *h.ActUser) {
		return nil, refusal(api.CodeForbidden, fmt.Sprintf(
			"user %s may not be a companion: only root, the agent's user and that of `act-user` in the agent's configuration may", access.UserName(p.UID)))
	}
	return nil, h.carry(q.w, q.Request, func(t *stream) (err error) {
		t.k, err = h.Campaigns.Stand(actors.Request{Meta: q.body.Meta, UID: p.UID, Own: true, PID: p.PID,
			Program: proof.Identify(t.unix, int64(t.accepted), false), Companion: c})
		return err
	})
}

// unacceptable returns what is wrong with what a companion reports.
func unacceptable(of string, c api.Companion) error {
	names := slices.Concat([]string{of}, c.Elections, slices.Collect(maps.Keys(c.Checks)), slices.Collect(maps.Keys(c.Failed)))
	if len(names) > 3*maxOfCompanion {
		return badRequest(fmt.Sprintf("a companion names %d elections; at most %d are allowed", len(names), 3*maxOfCompanion))
	}
	for _, name := range names {
		if name != api.EveryElection && !election.ValidName(name) {
			return badRequest(fmt.Sprintf("%q is not a valid election name", health.Line(name)))
		}
	}
	reasons := slices.Collect(maps.Values(c.Failed))
	for _, check := range c.Checks {
		reasons = append(reasons, check.Reason)
	}
	if slices.ContainsFunc(reasons, func(text string) bool { return text != health.Line(text) }) {
		return badRequest("a reason is one line of at most 200 bytes")
	}
	return nil
}

// report takes what a companion reports.
func (h *candidacies) report(c *call[api.Companion]) (any, error) {
	if err := unacceptable(api.EveryElection, c.body); err != nil {
		return nil, err
	}
	return &api.Outcome{Done: true}, h.Campaigns.Report(c.PathValue("id"), c.body, h.authorized(c.Request))
}
