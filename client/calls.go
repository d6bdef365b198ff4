package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// Agent returns what the agent reports about itself: GET /v1/agent.
func (c *Client) Agent(ctx context.Context) (api.Agent, error) {
	return call[api.Agent](ctx, c, http.MethodGet, "/v1/agent", nil)
}

// Members returns the members the agent knows: GET /v1/members.
func (c *Client) Members(ctx context.Context) ([]api.Member, error) {
	answer, err := call[api.Members](ctx, c, http.MethodGet, "/v1/members", nil)
	return answer.Members, err
}

// Elections returns every election the agent knows: GET /v1/elections.
func (c *Client) Elections(ctx context.Context) ([]api.Election, error) {
	answer, err := call[api.Elections](ctx, c, http.MethodGet, "/v1/elections", nil)
	return answer.Elections, err
}

// ElectionOptions are the options of Election.
type ElectionOptions struct {
	// Quorum makes the agent ask a majority of the voters before it answers. If no majority
	// answers, Election fails with api.CodeNoQuorum.
	Quorum bool
}

// Election returns one election: GET /v1/elections/NAME. If the election never had a candidate, the error
// is an *APIError with api.CodeNotFound.
func (c *Client) Election(ctx context.Context, name string, opts ElectionOptions) (api.Election, error) {
	path := electionPath(name, "")
	if opts.Quorum {
		path += "?consistency=quorum"
	}
	return call[api.Election](ctx, c, http.MethodGet, path, nil)
}

// Word returns the election's word: GET /v1/elections/NAME/word. It works on every host, also while nobody leads.
// If no majority of the voters answers, the error is an *APIError with api.CodeNoQuorum.
func (c *Client) Word(ctx context.Context, election string) (api.ElectionWord, error) {
	return call[api.ElectionWord](ctx, c, http.MethodGet, electionPath(election, "/word"), nil)
}

// Jobs returns the jobs of `doyen once` and `doyen cron`, sorted by name: GET /v1/jobs.
func (c *Client) Jobs(ctx context.Context) ([]api.Job, error) {
	answer, err := call[api.Jobs](ctx, c, http.MethodGet, "/v1/jobs", nil)
	return answer.Jobs, err
}

// IsLeader reports whether the agent of this host leads the election. It also returns the
// agent's answer, as Election does, with the same errors.
//
// If the answer took longer than the rest of the lease that it reports, leads is false although
// answer.IsLeader is true. This process or the agent may have been suspended meanwhile. If leads is true,
// the lease had not ended when the call returned. The agent may step down at any moment: a program that
// must be notified of that has to campaign.
func (c *Client) IsLeader(ctx context.Context, name string) (leads bool, answer api.Election, err error) {
	answer, asked, err := timed[api.Election](ctx, c, http.MethodGet, electionPath(name, ""), nil)
	return err == nil && proves(answer, time.Duration(alarm.Now()-asked)), answer, err
}

// proves reports whether an answer shows that the agent leads now; since is the time since the request
// was sent. Without a quorum there is no lease to compare that time with.
func proves(e api.Election, since time.Duration) bool {
	return e.IsLeader && (e.Authority == api.AuthorityView || since < time.Duration(e.LeaseRemainingMS)*time.Millisecond)
}

// Resign makes this agent step down in the election and waits for the outcome.
func (c *Client) Resign(ctx context.Context, name string) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, electionPath(name, "/resign"), struct{}{})
}

// Transfer makes this agent hand the election over to the candidate with that name, and waits
// for the outcome.
func (c *Client) Transfer(ctx context.Context, name, to string) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, electionPath(name, "/transfer"), api.TransferRequest{To: to})
}

// DrainAnyway drains this agent even if an election that its configuration expects is then without a
// candidate.
func (c *Client) DrainAnyway(ctx context.Context) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/drain", api.DrainRequest{On: true, Force: true})
}

// Drain makes this agent hand over all that it leads and be a candidate in no election. If on is false,
// Drain ends an earlier drain.
func (c *Client) Drain(ctx context.Context, on bool) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/drain", api.DrainRequest{On: on})
}

// DrainAgent is Drain for the named agent: any voter can pass the call on to that agent. With anyway,
// the agent is drained even if an election that its configuration expects is then without a candidate.
func (c *Client) DrainAgent(ctx context.Context, name string, on, anyway bool) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/drain", api.DrainRequest{On: on, Force: anyway, Agent: name})
}

// Agents returns what every agent reports about itself; this agent asks the others.
func (c *Client) Agents(ctx context.Context) ([]api.AgentReport, error) {
	all, err := call[api.Agents](ctx, c, http.MethodGet, "/v1/agents", nil)
	return all.Agents, err
}

// Leave makes this agent hand over, leave the cluster and stop.
func (c *Client) Leave(ctx context.Context) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/leave", struct{}{})
}

// Reload makes this agent read its configuration again.
func (c *Client) Reload(ctx context.Context) (api.Reload, error) {
	return call[api.Reload](ctx, c, http.MethodPost, "/v1/reload", struct{}{})
}

// Restart makes this agent's process end and the next one start. The next process goes on leading, and
// has another boot ID. Restart returns before the next process answers.
func (c *Client) Restart(ctx context.Context) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, "/v1/restart", struct{}{})
}

// History returns the newest changes of leadership that the agent saw, the newest last: GET /v1/history.
// If election is empty, it returns those of all elections. If limit is 0, the agent's own limit counts.
func (c *Client) History(ctx context.Context, election string, limit int) ([]api.Transition, error) {
	query := url.Values{}
	if election != "" {
		query.Set("election", election)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	path := "/v1/history"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer, err := call[api.History](ctx, c, http.MethodGet, path, nil)
	return answer.History, err
}

// Voters returns the roster: GET /v1/voters.
func (c *Client) Voters(ctx context.Context) (api.Voters, error) {
	return call[api.Voters](ctx, c, http.MethodGet, "/v1/voters", nil)
}

// ChangeVoters adds, removes or replaces one voter, cancels a change, or undoes the adoption of a roster.
// It waits until the new roster is confirmed, which takes a little more than a lease. The
// agent of this client must be a voter.
func (c *Client) ChangeVoters(ctx context.Context, r api.VotersRequest) (api.Voters, error) {
	return call[api.Voters](ctx, c, http.MethodPost, "/v1/voters", r)
}

// Settings returns what all agents of the cluster agree on: GET /v1/settings.
func (c *Client) Settings(ctx context.Context) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodGet, "/v1/settings", nil)
}

// ChangeSettings changes settings of the whole cluster, and waits until a majority has them. A change of
// the lease takes one lease longer. The agent of this client must be a voter.
func (c *Client) ChangeSettings(ctx context.Context, r api.SettingsRequest) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodPost, "/v1/settings", r)
}

// Allow changes, for the whole cluster, which agents may lead the election.
func (c *Client) Allow(ctx context.Context, election string, r api.AllowRequest) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodPost, electionPath(election, "/allow"), r)
}

// Keys returns the fingerprints of this agent's cluster keys, the key in use first: GET /v1/keys.
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	answer, err := call[api.Keys](ctx, c, http.MethodGet, "/v1/keys", nil)
	return answer.Keys, err
}

// ChangeKeys adds, uses or removes one cluster key on this agent without a restart, and returns the keys
// after the change: POST /v1/keys.
func (c *Client) ChangeKeys(ctx context.Context, r api.KeysRequest) ([]api.Key, error) {
	answer, err := call[api.Keys](ctx, c, http.MethodPost, "/v1/keys", r)
	return answer.Keys, err
}

// RotateKeys gives a new cluster key to the voters, or to the agents that the request names, and drops
// the other keys: POST /v1/keys with "rotate".
func (c *Client) RotateKeys(ctx context.Context, r api.KeysRequest) (api.Keys, error) {
	r.Rotate = true
	return call[api.Keys](ctx, c, http.MethodPost, "/v1/keys", r)
}

// Drills asks every agent for its view of a drill of the election: whether it could be run now, and what that
// agent has seen of it.
func (c *Client) Drills(ctx context.Context, election string) ([]api.DrillView, error) {
	answer, err := call[api.Drills](ctx, c, http.MethodGet, electionPath(election, "/drill"), nil)
	return answer.Agents, err
}

// Drill makes the election's leader hand over, or stop and start again. It returns before a stop happens:
// see api.DrillDelay.
func (c *Client) Drill(ctx context.Context, election string, r api.DrillRequest) (api.Outcome, error) {
	return call[api.Outcome](ctx, c, http.MethodPost, electionPath(election, "/drill"), r)
}

// SetLogLevel sets the level of the agent's log for a while: POST /v1/log-level.
func (c *Client) SetLogLevel(ctx context.Context, level string, limit time.Duration) (api.LogLevel, error) {
	return call[api.LogLevel](ctx, c, http.MethodPost, "/v1/log-level", api.LogLevelRequest{Level: level, ForMS: limit.Milliseconds()})
}

// Get returns the body of an answer unchanged, in any format, for example of /metrics or /v1/debug/log.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	body, _, err := c.ask(ctx, http.MethodGet, path, nil)
	return body, err
}

// AgentsBack is Agents. In addition, each other agent tries to reach the ports of the agent that is
// asked.
func (c *Client) AgentsBack(ctx context.Context) ([]api.AgentReport, error) {
	all, err := call[api.Agents](ctx, c, http.MethodGet, "/v1/agents?dial=back", nil)
	return all.Agents, err
}
