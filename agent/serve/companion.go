package serve

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/agent/proof"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
)

// maxOfCompanion bounds the elections, checks and failures of a companion, each.
const maxOfCompanion = election.MaxElections

// join makes the connection the stream of what acts beside the leader of this host. What a
// companion reports decides whether this host may lead, so only few users may be one.
func (h *candidacies) join(w http.ResponseWriter, r *http.Request, request api.CampaignRequest) {
	c, of := request.Companion, r.PathValue("name")
	if c == nil {
		c = &api.Companion{Elections: []string{of}}
	}
	if problem := unacceptable(of, *c); problem != "" {
		fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: problem})
		return
	}
	if problem := implausible(request); problem != "" {
		fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: problem})
		return
	}
	p, _ := caller(r)
	if !h.Access.Own(p.UID) && (h.ActUser == nil || p.UID != *h.ActUser) {
		fail(w, http.StatusForbidden, api.ErrorDetail{Code: api.CodeForbidden, Message: fmt.Sprintf(
			"user %s may not be a companion: only root, the agent's user and that of `act-user` in the agent's configuration may", access.UserName(p.UID))})
		return
	}
	if h.inOtherTime(w, p) {
		return
	}
	h.carry(w, r, func(t *stream, on link) (err error) {
		t.k, err = h.Campaigns.Stand(campaign.Request{Meta: request.Meta, UID: p.UID, Own: true, PID: p.PID,
			Program: proof.Identify(on.conn, int64(on.accepted), false), Companion: c})
		return err
	})
}

// unacceptable describes what is wrong with what a companion reports; empty: nothing is.
func unacceptable(of string, c api.Companion) string {
	names := slices.Concat([]string{of}, c.Elections, slices.Collect(maps.Keys(c.Checks)), slices.Collect(maps.Keys(c.Failed)))
	if len(names) > 3*maxOfCompanion {
		return fmt.Sprintf("a companion names %d elections; at most %d are allowed", len(names), 3*maxOfCompanion)
	}
	for _, name := range names {
		if name != api.EveryElection && !election.ValidName(name) {
			return fmt.Sprintf("%q is not a valid election name", health.Line(name))
		}
	}
	for _, text := range slices.Collect(maps.Values(c.Failed)) {
		if text != health.Line(text) {
			return "a reason is one line of at most 200 bytes"
		}
	}
	for _, check := range c.Checks {
		if check.Reason != health.Line(check.Reason) {
			return "a reason is one line of at most 200 bytes"
		}
	}
	return ""
}

// report takes what a companion reports.
func (h *candidacies) report(w http.ResponseWriter, r *http.Request) {
	var c api.Companion
	if !body(w, r, &c) {
		return
	}
	if problem := unacceptable(api.EveryElection, c); problem != "" {
		fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: problem})
		return
	}
	p, _ := caller(r)
	began := h.Clock()
	if err := h.Campaigns.Report(r.PathValue("id"), c, func(uid uint32) bool { return p.UID == uid || h.Access.Own(p.UID) }); err != nil {
		refused(w, err)
		return
	}
	answer(w, api.Outcome{Done: true, Waited: h.Clock().Sub(began).Milliseconds()})
}
