package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// patience is how long a candidacy waits before the runner reports why it waits. Most elections take less time.
const patience = time.Second

// askWhy asks the agent what a candidacy waits for. If the agent does not answer, askWhy reports nothing: the
// end of the connection is reported anyway.
func (r *runner) askWhy(candidacy *client.Candidacy) {
	if r.lines == nil || !r.waitFor(patience) {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, standTimeout)
	defer cancel()
	defer r.Client.Close() // closes the connection for questions; the candidacy has a separate one
	agent, err := r.Client.Agent(ctx)
	if err != nil {
		return
	}
	e, err := r.Client.Election(ctx, r.Election, client.ElectionOptions{})
	var campaigns []api.Campaign
	if err == nil && e.IsLeader {
		if campaigns, err = r.Client.Campaigns(ctx); err != nil {
			return
		}
		members, err := r.Client.Members(ctx)
		if err != nil || takesOver(r.Request.Priority, agent, members) {
			return
		}
	}
	settings, _ := r.Client.Settings(ctx) // an agent of an older version has no settings to show
	r.call(func() { r.explain(candidacy, whyNotElected(agent, e, campaigns, settings.Rights)) })
}

const (
	askAgain = 50 * time.Millisecond
	// tryFor is how long Try waits for an election in which nobody leads.
	tryFor = 10 * time.Second
)

// askWho asks the agent who leads, until this host is elected. It ends Run if another candidate leads.
func (r *runner) askWho(candidacy *client.Candidacy) {
	defer r.Client.Close()
	for until := alarm.Now() + int64(tryFor); r.waitFor(askAgain); {
		why := r.otherLeader(candidacy.ID())
		if why == "" && alarm.Now() >= until {
			why = "nobody could be elected in time"
		}
		done := make(chan bool, 1)
		r.call(func() {
			if done <- r.leading || r.candidacy != candidacy || r.ending || why != ""; why != "" && !r.leading && !r.ending {
				r.say("not started: %s", why)
				r.ending, r.status = true, StatusOtherLeads
			}
		})
		if r.ctx.Err() != nil || <-done {
			return
		}
	}
}

// otherLeader returns a sentence that names the leader; empty: the campaign `own` leads, or no leader is known.
func (r *runner) otherLeader(own string) string {
	ctx, cancel := context.WithTimeout(r.ctx, standTimeout)
	defer cancel()
	e, err := r.Client.Election(ctx, r.Election, client.ElectionOptions{})
	switch {
	case err != nil || e.Leader == nil:
		return ""
	case !e.IsLeader:
		return e.Leader.Name + " leads " + r.Election
	}
	campaigns, err := r.Client.Campaigns(ctx)
	if err != nil || slices.ContainsFunc(campaigns, func(c api.Campaign) bool { return own != "" && c.Campaign == own && c.Term > 0 }) {
		return ""
	}
	return "another program of this host leads " + r.Election
}

// waitFor waits for the time d. It returns false if Run has ended first.
func (r *runner) waitFor(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// takesOver reports whether a candidacy with that priority will soon take over from this host's agent,
// which leads now.
func takesOver(priority *int, agent api.Agent, members []api.Member) bool {
	return priority != nil && agent.Preempt &&
		slices.ContainsFunc(members, func(m api.Member) bool { return m.ID == agent.ID && m.Priority < *priority })
}

// whyNotElected describes what keeps a program of this host from being elected; empty: nothing, or something
// that will pass soon.
func whyNotElected(agent api.Agent, e api.Election, campaigns []api.Campaign, rights []api.Right) string {
	limited := slices.ContainsFunc(rights, func(r api.Right) bool { return r.Election == e.Election })
	switch {
	case agent.Draining:
		return "this agent is drained: nothing on this host is elected until `doyen drain off`"
	case len(e.Candidates) == 0 && slices.ContainsFunc(agent.Warnings, unhealthy):
		return agent.Warnings[slices.IndexFunc(agent.Warnings, unhealthy)].Message
	case agent.Quorum.Enabled && agent.Quorum.State == api.QuorumLost && agent.Quorum.Voters == 0:
		return "no quorum: this agent does not know the voters yet: `doyen status` shows what it waits for"
	case agent.Quorum.Enabled && agent.Quorum.State == api.QuorumLost:
		return fmt.Sprintf("no quorum: this agent reaches %d of %d voters, and %d are needed: `doyen voters` shows which ones are missing",
			agent.Quorum.Reachable, agent.Quorum.Voters, agent.Quorum.Needed)
	case e.IsLeader && !slices.ContainsFunc(campaigns, func(c api.Campaign) bool { return c.Election == e.Election && c.Term > 0 }):
		return fmt.Sprintf("this host's agent is a candidate in %s too, and leads it: nothing is started until the agent leads no longer. "+
			"Use an election of another name, or start the agent with --candidate=false", e.Election)
	case limited && !slices.Contains(e.Candidates, agent.Name):
		return fmt.Sprintf("the cluster's rights do not let this host lead %s, or not with this priority: `doyen settings` shows them", e.Election)
	}
	return ""
}

func unhealthy(w api.Warning) bool { return w.Code == "check_failed" }

// explain reports why the candidacy is not elected, once for each reason.
func (r *runner) explain(candidacy *client.Candidacy, why string) {
	if candidacy != r.candidacy || r.over || r.leading || why == "" || why == r.explained {
		return
	}
	r.explained = why
	r.say("%s", why)
}
