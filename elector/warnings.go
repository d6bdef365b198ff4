package elector

import (
	"cmp"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
)

// warnings lists the conditions that an operator should end, sorted by code.
func (e *Elector) warnings(q QuorumStatus) (ws []Warning) {
	switch {
	case e.barred.Code != "":
		ws = append(ws, Warning{Code: e.barred.Code, Barred: e.barred})
	case !e.writes():
		ws = append(ws, Warning{Code: "disk_failing"})
	}
	if e.doubts() {
		ws = append(ws, Warning{Code: "running_late"})
	}
	for i, p := range e.foreign.rows {
		ws = append(ws, Warning{Code: "foreign_cluster", Agent: e.nameOf(e.foreign.keys[i]), Cluster: p.roster.Cluster,
			Own: e.heldRoster().Cluster, Former: e.barred.Code == "" && e.wasVoterOf(p.roster)})
	}
	for i, p := range e.noted.rows {
		ws = e.warnOfPeer(ws, e.noted.keys[i], p)
	}
	switch {
	case !e.cfg.Quorum:
	case e.roster == nil:
		ws = append(ws, Warning{Code: "formation", Forming: e.formation.Problem(e.now)})
	default:
		ws = e.warnOfVoters(ws, q)
	}
	slices.SortStableFunc(ws, func(a, b Warning) int { return cmp.Compare(a.Code, b.Code) })
	return ws
}

func (e *Elector) warnOfPeer(ws []Warning, id election.PeerID, p *peer) []Warning {
	warn := func(w Warning) {
		w.Agent = e.nameOf(id)
		ws = append(ws, w)
	}
	if e.cfg.Quorum && e.now < p.unwritableUntil {
		warn(Warning{Code: "voter_disk_failing"})
	}
	if e.roster == nil || !e.cfg.Quorum {
		return ws
	}
	if voters, why := p.Doubted(e.roster); why != 0 {
		warn(Warning{Code: "roster_doubted", Voters: voters, Doubt: why})
	}
	return ws
}

// strangers warns of members with the name of a voter and another identity: that voter's promises are lost.
func strangers(v election.View, r *election.Roster) (ws []Warning) {
	for _, m := range v.Members {
		if voter, ok := r.Named(m.Name); ok && voter.Peer != m.Peer {
			ws = append(ws, Warning{Code: "identity_changed", Agent: m.Name, Peer: voter.Peer})
		}
	}
	return ws
}

func (e *Elector) warnOfVoters(ws []Warning, q QuorumStatus) []Warning {
	if e.otherVoters() {
		ws = append(ws, Warning{Code: "voters_differ", Voters: strings.Join(e.cfg.Voters, ",")})
	}
	for _, v := range e.roster.All() {
		if e.older(v.Peer) {
			ws = append(ws, Warning{Code: "voter_data_dir_older", Agent: e.nameOf(v.Peer)})
		}
		if p := e.peers.get(v.Peer); p != nil && e.change.Behind(e.now, &p.Peer) {
			ws = append(ws, Warning{Code: "voter_behind", Agent: e.nameOf(v.Peer)})
		}
	}
	ws = append(ws, e.strangers...)
	if e.change.Lasts(e.now) {
		ws = append(ws, Warning{Code: "voters_change"})
	}
	for _, name := range e.change.TooFar() {
		ws = append(ws, Warning{Code: "voter_term_leap", Agent: name})
	}
	switch {
	case !q.Exists:
		ws = append(ws, Warning{Code: "quorum_lost", Voters: e.missing()})
	case q.Edge && q.Voters > 1 && (q.Reachable < q.Voters || !e.roster.Joint()):
		ws = append(ws, Warning{Code: "quorum_edge", Voters: e.missing()})
	}
	return ws
}

// missing names the voters that do not count towards the quorum.
func (e *Elector) missing() string {
	return strings.Join(election.Names(e.roster.Counted(), func(v election.Voter) bool { return !e.supports(v.Peer) }), ", ")
}

// otherVoters reports whether this agent was started with other voters than the roster has, if that is the first
// roster or lacks this agent. Other differences come from later changes of the roster, and are not mistakes.
func (e *Elector) otherVoters() bool {
	if len(e.cfg.Voters) == 0 {
		return false
	}
	names := election.Names(e.roster.All(), nil)
	first := e.roster.Version == election.Version{Counter: 1}
	left := slices.Contains(e.cfg.Voters, e.cfg.Name) && !slices.Contains(names, e.cfg.Name)
	return (first || left) && !slices.Equal(slices.Sorted(slices.Values(e.cfg.Voters)), names)
}
