package serve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
)

// maxOfCompanion bounds the elections, checks and failures of a companion, each.
const maxOfCompanion = election.MaxElections

// join makes the connection the stream of what acts beside the leader of this host. What a
// companion reports decides whether this host may lead, so only few users may be one.
func (h *candidacies) join(q *call[api.CampaignRequest]) (any, error) {
	c := q.body.Companion
	if c == nil {
		c = &api.Companion{Elections: []string{string(q.election)}}
	}
	if err := cmp.Or(unacceptable(string(q.election), *c), implausible(q.body)); err != nil {
		return nil, err
	}
	p, _ := caller(q.Request)
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
