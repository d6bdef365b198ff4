package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

const (
	// betweenDrills is how long after a drill no other one is run: the agents are to be at rest.
	betweenDrills = time.Minute
	// drillChanges is how many changes an agent shows of its history. They fit one answer.
	drillChanges = 64
	drillCall    = "drill " // how commandText begins
	// tryTime is how long a stop may try beforehand whether the agent could start again.
	tryTime = 8 * time.Second
)

// drills answers about every agent, each asked for itself. To another agent it answers only about
// this one.
func (s *Server) drills(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	if !ok || !isForwarded(r) && !s.mayAsk(w, r, 1) {
		return
	}
	all := []api.DrillView{s.drillView(name)}
	if !isForwarded(r) {
		all = append(all, s.drillViews(r)...)
		slices.SortFunc(all, func(a, b api.DrillView) int { return strings.Compare(a.Name, b.Name) })
	}
	answer(w, api.Drills{Agents: all})
}

func (s *Server) drillView(name election.Name) api.DrillView {
	v := api.DrillView{Name: s.Name, ID: string(s.Self.Peer), Reached: true, BootID: s.Run.String(), Keeper: s.Keeper, Changes: s.History("", drillChanges)}
	v.Record, v.Service = s.Lasts()
	for i := range v.Changes {
		v.Changes[i].Evidence = ""
	}
	if why := s.againstDrill(name); why != nil {
		v.Refused = why.Message
	}
	return v
}

func (s *Server) drillViews(r *http.Request) []api.DrillView {
	var views []api.DrillView
	s.others.askOthers(r.Context(), election.Call{Method: http.MethodGet, Path: r.URL.Path, Caller: callerWords(r)}, func(m membership.Member, a *election.CallAnswer) {
		v := api.DrillView{Changes: []api.Transition{}}
		var its api.Drills
		if a != nil && json.Unmarshal(a.Body, &its) == nil && len(its.Agents) == 1 {
			v = its.Agents[0]
		}
		v.Name, v.ID = m.Name, string(m.Peer) // as the connection proves
		views = append(views, v)
	})
	return views
}

// drill does to this agent, if it leads, what a drill is for, or has the leader do it.
func (s *Server) drill(w http.ResponseWriter, r *http.Request) {
	name, ok := name(w, r)
	var request api.DrillRequest
	if !ok || !body(w, r, &request) {
		return
	}
	right := access.Admin
	switch request.How {
	case api.DrillTransfer:
		right = access.HandOver
	case api.DrillStop:
	default:
		fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: `"how" must be transfer or stop: an agent is killed on its own host, as by kill -9`})
		return
	}
	if !isForwarded(r) && !s.may(w, r, right, string(name)) {
		return
	}
	enter := func() {
		if by := s.asker(r); by != nil {
			s.enter(by, r, map[string]any{"how": request.How, "term": request.Term})
		}
	}
	if leader, elsewhere := s.leaderElsewhere(r, name); elsewhere {
		out := recorder{header: http.Header{}, status: http.StatusOK}
		if s.forward(&out, r, leader, request); out.status == http.StatusOK {
			enter()
		}
		write(w, out.status, json.RawMessage(out.body.Bytes()))
		return
	}
	if why := s.mayDrill(name, request); why != nil {
		refuse(w, why)
		return
	}
	s.doDrill(w, r, name, request, enter)
}

// doDrill does what mayDrill has found to be possible. It answers before the process ends.
func (s *Server) doDrill(w http.ResponseWriter, r *http.Request, name election.Name, request api.DrillRequest, enter func()) {
	if request.How == api.DrillTransfer {
		target, _ := named(s.Picture(), request.To)
		enter()
		s.handOver(w, r, name, func(id election.RequestID) election.Input {
			return election.Transfer{Election: name, To: target, Request: id}
		}, target)
		return
	}
	if _, err := s.Restart(r.Context()); err != nil {
		refuse(w, &api.ErrorDetail{Code: api.CodeUnavailable, Message: "this agent could not start again: " + err.Error()})
		return
	}
	enter()
	w.Header().Set("Connection", "close")
	answer(w, api.Outcome{Done: true, Message: fmt.Sprintf("%s in %s", request.How, api.DrillDelay)})
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	time.AfterFunc(api.DrillDelay, func() { s.Restarts("this is a drill") })
}

// mayDrill judges at the leader whether this very drill may be run.
func (s *Server) mayDrill(name election.Name, request api.DrillRequest) *api.ErrorDetail {
	e, leads := s.led(name)
	target, known := named(s.Picture(), request.To)
	switch {
	case !leads:
		return &api.ErrorDetail{Code: api.CodeNotLeader, Message: "this agent does not lead " + string(name)}
	case e.Term != request.Term:
		return &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf("this agent leads in term %d and not in term %d as it was planned: plan the drill again", e.Term, request.Term)}
	case request.How == api.DrillTransfer && (!known || target == s.Self.Peer):
		return &api.ErrorDetail{Code: api.CodeBadRequest, Message: `"to" must name another live agent for a transfer, as {"how":"transfer","to":"b"}`}
	}
	if why := s.againstDrill(name); why != nil {
		return why
	}
	for _, c := range s.Picture().Status.Contests {
		if _, leads := s.led(c.Election); leads && request.How != api.DrillTransfer && !s.succeedable(c.Election) {
			return &api.ErrorDetail{Code: api.CodeNoCandidate, Message: "this agent leads " + string(c.Election) + " too, and nobody else can lead it"}
		}
	}
	return nil
}

// againstDrill is why no drill of an election should be run now, as far as this agent knows.
func (s *Server) againstDrill(name election.Name) *api.ErrorDetail {
	p, now := s.Picture(), s.Clock()
	q := p.Status.Quorum
	switch {
	case q.Enabled && !q.Exists:
		return &api.ErrorDetail{Code: api.CodeNoQuorum, Message: "a majority of the voters can't be reached"}
	case q.Enabled && q.Edge:
		return &api.ErrorDetail{Code: api.CodeNoQuorum, Message: fmt.Sprintf("one more loss would cost the quorum: %d of %d voters can be reached, and %d are needed", q.Reachable, q.Voters, q.Needed)}
	case q.Enabled && p.Status.Roster.Joint():
		return &api.ErrorDetail{Code: api.CodeBusy, Message: "a change of the voters is under way: `doyen voters` shows it"}
	}
	for _, c := range p.Status.Contests {
		if _, led := c.LeaderAt(now); !led && c.State != elector.Idle {
			return &api.ErrorDetail{Code: api.CodeBusy, Message: "nobody leads " + string(c.Election) + " now: an election is under way"}
		}
	}
	if _, leads := s.led(name); leads && !s.succeedable(name) {
		return &api.ErrorDetail{Code: api.CodeNoCandidate, Message: "no other agent can lead " + string(name) + ": all are drained, have priority 0, or can't be reached"}
	}
	for _, t := range s.History("", drillChanges) {
		since := now.Sub(election.Instant(t.BoottimeNS))
		if t.Type == api.ChangeCommand && strings.HasPrefix(t.Reason, drillCall) && since >= 0 && since < betweenDrills {
			return &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf("there was a drill %s ago: wait until a minute has passed", since.Truncate(time.Second))}
		}
	}
	return nil
}
