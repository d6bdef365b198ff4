package elector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/election"
)

func (e *Elector) warnings(q QuorumStatus) []Warning {
	var ws []Warning
	warn := func(code, message string) { ws = append(ws, Warning{Code: code, Message: message}) }
	if e.barred.Code != "" {
		warn(e.barred.Code, e.barred.Message)
	} else if !e.writes() {
		warn("disk_failing", "the state file can't be written: this agent grants no votes and can't be elected until it can; free space on the disk of its data dir, or repair the disk")
	}
	if foreign := e.describeForeign(); foreign != "" {
		warn("foreign_cluster", foreign)
	}
	if !e.cfg.Quorum {
		return ws
	}
	if unwritable := e.describeUnwritable(); unwritable != "" {
		warn("voter_disk_failing", unwritable)
	}
	if e.roster == nil {
		warn("formation", "the first roster is not formed yet, so nobody can vote: "+e.formation.Problem(e.now))
		sortWarnings(ws)
		return ws
	}
	if differ := e.describeOtherVoters(); differ != "" {
		warn("voters_differ", differ)
	}
	if doubted := e.describeDoubted(); doubted != "" {
		warn("roster_doubted", doubted)
	}
	if behind := e.describeBehind(); behind != "" {
		warn("voter_behind", behind)
	}
	if older := e.describeOlder(); older != "" {
		warn("voter_data_dir_older", older)
	}
	if others := e.describeChanged(); others != "" {
		warn("identity_changed", others)
	}
	if (e.roster.Joint() || e.awaitsOutcome()) && e.now >= e.change.since.Add(2*e.cfg.Timing.Lease) {
		warn("voters_change", "a change of the voters takes a long time: "+e.describeChange()+e.changeAdvice())
	}
	if far := e.describeTooFar(); far != "" {
		warn("voter_term_leap", far)
	}
	switch {
	case !q.Exists:
		warn("quorum_lost", "a majority of the voters can't be reached: nobody can lead until more voters are back")
	case q.Edge && q.Voters > 1 && q.Reachable < q.Voters:
		warn("quorum_edge", "if one more voter is lost, nobody can lead: bring the missing voters back")
	case q.Edge && q.Voters > 1 && !e.roster.Joint():
		warn("quorum_edge", fmt.Sprintf("with %d voters, none may be lost: add another with doyen voters add", q.Voters))
	}
	sortWarnings(ws)
	return ws
}

// describeOtherVoters says that this agent was started with other voters than
// those that were formed. Later changes of the roster are nobody's mistake.
func (e *Elector) describeOtherVoters() string {
	var names []string
	for _, v := range e.roster.All() {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	first := e.roster.Version == election.Version{Counter: 1}
	left := slices.Contains(e.cfg.Voters, e.cfg.Name) && !slices.Contains(names, e.cfg.Name)
	if len(e.cfg.Voters) == 0 || slices.Equal(slices.Sorted(slices.Values(e.cfg.Voters)), names) || !first && !left {
		return ""
	}
	return fmt.Sprintf("this agent was started with --voters %s, but the voters are %s: the flag only sets the first roster; change the voters with doyen voters add or remove",
		strings.Join(e.cfg.Voters, ","), strings.Join(names, ","))
}

// describeChanged names the live agents that the roster knows under another
// identity: their data dirs were lost or exchanged, and their promises with them.
func (e *Elector) describeChanged() string {
	var texts []string
	for _, m := range e.view.Members {
		v, ok := e.roster.Named(m.Name)
		if !ok || v.Peer == m.Peer {
			continue
		}
		texts = append(texts, m.Name+" can't vote: the roster lists a different identity under that name ("+string(v.Peer)+
			"); restore its original data directory if it still exists (never a backup of it), or run on a voter: doyen voters replace "+m.Name)
	}
	return strings.Join(texts, "; ")
}

func sortWarnings(ws []Warning) {
	slices.SortFunc(ws, func(a, b Warning) int { return cmp.Compare(a.Code, b.Code) })
}

func (e *Elector) describeForeign() string {
	for i, p := range e.peers.rows {
		if e.foreign(p) && e.wasVoterOf(p.tells) && e.barred.Code == "" {
			return fmt.Sprintf("%[1]s is an observer of another cluster (%[2]s; this agent's is %[3]s), of which %[4]s was a voter under an identity that is lost: if no voter of that cluster runs any more, stop %[1]s, delete its data directory and start it again, so that it joins this cluster; if a voter of that cluster still runs, this agent must join it: stop this agent, delete its data directory, start it with --join and without --voters",
				e.nameOf(e.peers.keys[i]), p.cluster, e.heldRoster().Cluster, e.cfg.Name)
		}
		if e.foreign(p) {
			return fmt.Sprintf("%s belongs to another cluster (%s; this agent's is %s): give one of the two another --cluster name, or wipe the data dir of the one that should join",
				e.nameOf(e.peers.keys[i]), p.cluster, e.heldRoster().Cluster)
		}
	}
	return ""
}

// describeUnwritable names the voters that said they can't write.
func (e *Elector) describeUnwritable() string {
	var names []string
	for i, p := range e.peers.rows {
		if e.now < p.unwritableUntil {
			names = append(names, e.nameOf(e.peers.keys[i]))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + " can't write promises, so its vote can't be had: free space on the disk of the data dir on that host, or repair the disk"
}
