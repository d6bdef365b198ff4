package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/forward"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// agentTime is how long an agent may take to answer about itself. forwardSlack is how much
// longer a call may take if another agent carries it out.
const (
	agentTime    = 2 * time.Second
	forwardSlack = time.Second
)

// Other makes calls of this API at other agents.
type Other interface {
	Call(ctx context.Context, to election.PeerID, c election.Call) (election.CallAnswer, error)
}

// forwardedKey is the key in a request's context for the agent that forwarded the request.
type forwardedKey struct{}

// forwarded is where a forwarded request comes from. The connection proves the identity of the agent, from. caller is
// the process that called that agent, as the agent describes it.
type forwarded struct {
	from   election.PeerID
	caller string
}

// passedBy returns the agent that forwarded the request, if one did.
func passedBy(r *http.Request) (election.PeerID, bool) {
	f, ok := r.Context().Value(forwardedKey{}).(forwarded)
	return f.from, ok
}

func isForwarded(r *http.Request) bool {
	_, passed := passedBy(r)
	return passed
}

// Forwarded carries out a call that another agent forwards. The connection proves that agent's identity,
// from. Nothing proves c.Caller, which is only for log and history.
func (s *Server) Forwarded(ctx context.Context, from election.PeerID, c election.Call) election.CallAnswer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r, err := http.NewRequestWithContext(context.WithValue(ctx, forwardedKey{}, forwarded{from, c.Caller}), c.Method, "http://d"+c.Path, bytes.NewReader(c.Body))
	if err != nil || !plainPath(r.URL.Path) {
		return election.CallAnswer{Status: http.StatusBadRequest}
	}
	out := recorded(s.forwarding, r)
	if out.body.Len() > election.MaxCallBody {
		return election.CallAnswer{Status: http.StatusServiceUnavailable}
	}
	return election.CallAnswer{Status: uint64(out.status), Body: out.body.Bytes()}
}

// leaderElsewhere returns the leader of an election and its term, if a call about the election should
// be carried out at that leader. The forwarded call has to name the term: a leader that was frozen
// may get the call late, when it leads under another term.
func (s *Server) leaderElsewhere(r *http.Request, name election.Name) (election.PeerID, uint64, bool) {
	p := s.Picture()
	c, _ := p.contest(name)
	leader, ok := c.LeaderAt(s.Clock())
	return leader.Peer, uint64(c.Term), ok && leader.Peer != s.Self.Peer && s.mayForward(r)
}

func (s *Server) mayForward(r *http.Request) bool {
	return s.Other != nil && !isForwarded(r) && s.Picture().Status.Roster.Has(s.Self.Peer)
}

// forward asks another agent to carry out a change, and returns the outcome.
func (s *Server) forward(r *http.Request, to election.PeerID, request any) (any, error) {
	limit := 2*s.lease() + outcomeSlack + forwardSlack
	if _, drill := request.(api.DrillRequest); drill {
		limit += tryTime
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	name := s.Picture().Names.Of(to)
	var outcome api.Outcome
	err := s.others.pass(ctx, r, to, request, &outcome)
	switch refused, ok := errors.AsType[*api.ErrorDetail](err); {
	case ok:
		return nil, refusal(refused.Code, "agent "+name+": "+refused.Message)
	case errors.Is(err, errTooBusy):
		return nil, refusal(api.CodeUnavailable, "agent "+name+" is too busy to do this: try again")
	case err != nil:
		return nil, refusal(api.CodeUnavailable, "agent "+name+" has to do this: "+err.Error()+"; run the command on "+name)
	case outcome.Message != "":
		outcome.Message = "agent " + name + ": " + outcome.Message
	}
	return &outcome, nil
}

func (o others) pass(ctx context.Context, r *http.Request, to election.PeerID, request, answered any) error {
	return o.call(ctx, to, election.Call{Method: r.Method, Path: r.URL.Path, Caller: callerWords(r)}, request, answered)
}

var errTooBusy = errors.New("it is too busy")

// call makes a call at another agent, and decodes the answer. The error may be that agent's refusal.
func (o others) call(ctx context.Context, to election.PeerID, c election.Call, request, answered any) error {
	var err error
	if request != nil {
		if c.Body, err = json.Marshal(request); err != nil {
			return err
		}
	}
	a, err := o.Other.Call(ctx, to, c)
	var failed api.Error
	switch {
	case err != nil:
		return err
	case a.Status == http.StatusOK && json.Unmarshal(a.Body, answered) == nil:
		return nil
	case json.Unmarshal(a.Body, &failed) == nil && failed.Err.Code != "":
		return &failed.Err
	}
	return errTooBusy
}

// unable are the reasons why this agent can't change the roster although another voter may be able to.
var unable = []election.Denial{election.DeniedBarred, election.DeniedNoMajority, election.DeniedNotConnected}

// unchanged are the codes of refusals that changed nothing, and after which another voter may be able to make
// the change.
var unchanged = []string{api.CodeNotFound, api.CodeNoQuorum, api.CodeForbidden, api.CodeNotVoter}

// reviseElsewhere handles a change of the roster that this agent has refused. If another voter may be able
// to make the change, this agent asks one voter after another. It stops at a refusal that all would give.
func (s *Server) reviseElsewhere(r *http.Request, why *election.Refusal, request any) (any, error) {
	own := words.Refusal(why)
	first := own.Message
	v, cancels := request.(api.VotersRequest)
	cancels = cancels && v.Cancel && why.Why == election.DeniedNoChange // the change to cancel may wait at another agent
	if !cancels && !slices.Contains(unable, why.Why) || v.Restore || !s.mayForward(r) {
		return nil, own
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.rosterTime()+forwardSlack)
	defer cancel()
	p := s.Picture()
	for _, voter := range p.Status.Roster.All() {
		if !p.Connected[voter.Peer] {
			continue
		}
		var answered json.RawMessage
		err := s.others.pass(ctx, r, voter.Peer, request, &answered)
		refused, ok := errors.AsType[*api.ErrorDetail](err)
		switch {
		case err == nil:
			return answered, nil
		case errors.Is(err, forward.ErrNotSent), errors.Is(err, errTooBusy):
		case !ok:
			return nil, refusal(api.CodeUnavailable, own.Message+"; agent "+voter.Name+" was asked to do it, and may have done it: "+err.Error())
		case !slices.Contains(unchanged, refused.Code):
			return nil, refusal(refused.Code, "agent "+voter.Name+": "+refused.Message)
		case refused.Message != first:
			own.Message += "; agent " + voter.Name + ": " + refused.Message
		}
	}
	return nil, own
}

// callerWords describes the caller for the log and the history of another agent, which reads it by callerOf.
func callerWords(r *http.Request) string {
	p := caller(r)
	if p == nil {
		return ""
	}
	return clip(fmt.Sprintf("user %s (uid %d, pid %d, %s", access.UserName(p.UID), p.UID, p.PID, processName(p.PID))) + ")"
}

// callerOf reads what callerWords wrote at another agent. The text proves nothing, so it gives no
// rights. An agent of an older version does not send the numbers.
func callerOf(text, host string) *api.Caller {
	by := &api.Caller{UID: math.MaxUint32, User: clip(cmp.Or(strings.TrimPrefix(text, "user "), "unknown")), Host: host}
	var user string
	var uid uint32
	var pid int32
	if _, err := fmt.Sscanf(text, "user %s (uid %d, pid %d,", &user, &uid, &pid); err != nil {
		return by
	}
	_, rest, _ := strings.Cut(text, ", pid ")
	_, command, _ := strings.Cut(rest, ", ")
	by.User, by.UID, by.PID, by.Command = clip(user), uid, pid, clip(strings.TrimSuffix(command, ")"))
	return by
}

// agents collects the reports of all agents. A call from another agent gets only this agent's report.
func (s *Server) agents(r *http.Request) (any, error) {
	own, back := s.others.reportOwn(r.Context()), r.URL.RawQuery == dialBack
	if from, ok := passedBy(r); ok {
		if back && s.fromVoter(r) == nil {
			own.Dials = s.others.dials(r.Context(), from)
		}
		return api.Agents{Agents: []api.AgentReport{own}}, nil
	}
	if err := s.mayAsk(r, questionsTo(s.Picture())); err != nil {
		return nil, err
	}
	var pinging sync.WaitGroup
	if back {
		pinging.Go(func() { own.Dials = s.others.pingAll() })
	}
	all := s.others.reportOthers(r.Context(), back)
	pinging.Wait()
	all = append(all, own)
	slices.SortFunc(all, func(a, b api.AgentReport) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return api.Agents{Agents: all}, nil
}

// others asks the other agents, and makes this agent's answers about itself.
type others struct{ *Config }

// These bound the number and the bytes of another agent's warnings: that agent may send anything.
const maxReported, maxMessage, maxCode = 16, 1000, 40

// reportOwn describes this agent. Its lag is how long the agent's loop takes to answer.
func (o others) reportOwn(ctx context.Context) api.AgentReport {
	p := o.Picture()
	own := api.AgentReport{Name: o.Name, ID: string(o.Self.Peer), Version: o.Version, Draining: p.Status.Draining,
		Warnings: append([]api.Warning{}, p.Warnings...), Keys: []api.Key{}, Reached: true}
	if o.Keyring != nil {
		own.Keys = o.Keyring.Keys()
	}
	began := o.Clock()
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	_ = o.Ping(ctx) // if the loop does not answer, the lag is the whole timeout
	own.LagMS = roundUp(o.Clock().Sub(began))
	return own
}

func (o others) reportOthers(ctx context.Context, back bool) []api.AgentReport {
	path := "/v1/agents"
	if back {
		path += "?" + dialBack
	}
	return askOthers(ctx, o, election.Call{Method: http.MethodGet, Path: path}, func(m membership.Member, its *api.AgentReport) api.AgentReport {
		report := *cmp.Or(its, &api.AgentReport{Version: m.Version, Draining: m.Draining, Warnings: []api.Warning{}, Keys: []api.Key{}})
		report.Warnings = report.Warnings[:min(len(report.Warnings), maxReported)]
		for i, w := range report.Warnings {
			report.Warnings[i].Message = strings.ToValidUTF8(w.Message[:min(len(w.Message), maxMessage)], "")
			report.Warnings[i].Code = strings.ToValidUTF8(w.Code[:min(len(w.Code), maxCode)], "")
		}
		report.Name, report.ID = m.Name, string(m.Peer) // the connection proves which agent this is, and the answer does not
		return report
	})
}

// askOthers asks all other known agents about themselves, by the same call. know turns each
// answer into a result. It gets nil for an agent that did not answer, or answered with an error.
func askOthers[A any](ctx context.Context, o others, c election.Call, know func(membership.Member, *A) A) []A {
	p := o.Picture()
	members := slices.DeleteFunc(p.all(), func(m membership.Member) bool { return m.Peer == o.Self.Peer })
	return together(members, func(m membership.Member) A {
		ctx, cancel := context.WithTimeout(ctx, agentTime+forwardSlack)
		defer cancel()
		var its struct{ Agents []A }
		if o.Other == nil || o.call(ctx, m.Peer, c, nil, &its) != nil || len(its.Agents) != 1 {
			return know(m, nil)
		}
		return know(m, &its.Agents[0])
	})
}

// together calls do for all elements of a list at once, and returns the results in the list's order.
func together[A, B any](list []A, do func(A) B) []B {
	all := make([]B, len(list))
	var doing sync.WaitGroup
	for i, a := range list {
		doing.Go(func() { all[i] = do(a) })
	}
	doing.Wait()
	return all
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// dialBack is the query of GET /v1/agents that makes each other agent try the ports of this one.
const (
	dialBack    = "dial=back"
	dialTimeout = time.Second // for all ports together
)

// dials tries the ports of another agent, at the addresses that gossip has. So the other agent learns
// whether its firewall accepts connections. Only a voter may ask for that: an agent chooses its
// addresses itself, so a stranger could have this agent dial any address.
func (o others) dials(ctx context.Context, to election.PeerID) []api.Dial {
	m, ok := o.Picture().member(to)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	ports := []api.Dial{
		{Port: api.DialGossipTCP, Addr: m.GossipAddr.String()}, {Port: api.DialPeerTCP, Addr: m.PeerAddr.String()}, {Port: api.DialGossipUDP},
	}
	return together(ports, func(d api.Dial) api.Dial {
		if d.Port == api.DialGossipUDP {
			return o.ping(m)
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.Addr)
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, unix.ECONNREFUSED):
			d.Error = "connection refused"
		case ctx.Err() != nil:
			d.Error = "no answer within " + dialTimeout.String()
		default:
			d.Error = socket.Cause(err)
		}
		return d
	})
}

// pingAll tries to reach each other agent over UDP. Over TCP, the caller can try that without this agent.
func (o others) pingAll() []api.Dial {
	others := slices.DeleteFunc(slices.Clone(o.Picture().View.Members), func(m membership.Member) bool {
		return m.Peer == o.Self.Peer || m.Status != membership.Alive
	})
	return together(others, o.ping)
}

func (o others) ping(to membership.Member) api.Dial {
	d := api.Dial{Port: api.DialGossipUDP, Addr: to.GossipAddr.String()}
	if err := o.Pings(to); err != nil {
		d.Error = socket.Cause(err)
	}
	return d
}

// reportsLast is how old reports are when newer ones are asked for. An agent has to answer in less time.
const reportsLast = 10 * time.Second

// reports has what the other agents last reported about themselves, for the status page. The others are
// asked at most once in reportsLast, however many people look at the page, and no reader waits for answers.
type reports struct {
	mu    sync.Mutex
	known []api.AgentReport
	asked election.Instant
}

// newest returns the reports; nil: none have come yet, or nobody has looked at the page for a while.
func (r *reports) newest(ctx context.Context, o others) []api.AgentReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := o.Clock().Sub(r.asked)
	if age >= 2*reportsLast {
		r.known = nil
	}
	if age >= reportsLast || r.asked == 0 {
		r.asked = o.Clock()
		go func() {
			all := o.reportOthers(ctx, false)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.known = all
		}()
	}
	return r.known
}
