package words

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/roster"
)

// Warnings returns the elector's warnings as texts, with one text for all warnings of one code.
// name is this agent's name. live returns the ID and the address of the live agent that has
// the given name, if any.
func Warnings(s *elector.Status, name string, live func(name string) (id, addr string)) []api.Warning {
	var all []api.Warning
	for rest := s.Warnings; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Code == rest[0].Code {
			n++
		}
		all = append(all, api.Warning{Code: rest[0].Code, Message: warning(s, name, rest[:n], live)})
		rest = rest[n:]
	}
	return all
}

// warning puts the warnings of one code into words.
func warning(s *elector.Status, name string, ws []elector.Warning, live func(string) (id, addr string)) string {
	w := ws[0]
	edge := "with " + strconv.Itoa(s.Quorum.Voters) + " voters, none may be lost: add another with doyen voters add"
	if s.Quorum.Reachable < s.Quorum.Voters {
		edge = "if one more voter is lost, nobody can lead: bring the missing voters back" + bracketed(w.Voters)
	}
	return cmp.Or(map[string]string{
		"disk_failing":     "the state file can't be written: this agent grants no votes and can't be elected until it can; free space on the disk of its data dir, or repair the disk",
		"foreign_cluster":  foreign(name, w),
		"formation":        "the first roster is not formed yet, so nobody can vote: " + Forming(w.Forming),
		"identity_changed": changed(ws, live),
		"quorum_edge":      edge,
		"quorum_lost": "a majority of the voters can't be reached: nobody can lead until more voters are back" + bracketed(w.Voters) +
			". Start their agents, or repair the network between the hosts",
		"roster_doubted": doubted(s, name, ws),
		"running_late":   "this agent runs late: its timer, its loop or a write took more than a quarter of the lease; until it has been on time for a lease it is not a candidate where another agent is one, and a leader that is late again hands over; give its host more processor time or a faster disk, or all agents a longer lease",
		"voter_behind": joined(ws, "; ", func(w elector.Warning) string {
			return w.Agent + " holds an older list of voters and does not adopt the present one, so its vote does not count; `doyen status` there shows why. " +
				startAgain(w.Agent) + ", and run on another voter: doyen voters replace " + w.Agent
		}),
		"voter_data_dir_older": "the data directory of " + agents(ws) + " is older than the one used before: promises are lost, so its votes do not count here. " +
			"Stop that agent and restore its newest data directory; if it no longer exists, move the directory away, start the agent with a new identity, and run on another voter: doyen voters replace NAME",
		"voter_disk_failing": agents(ws) + " can't write promises, so its vote can't be had: free space on the disk of the data dir on that host, or repair the disk",
		"voter_term_leap":    agents(ws) + " reported a term far above all that the other voters know, so its acceptance of the change of the voters does not count: its state is damaged, or another program runs in its place; run doyen voters cancel, move that agent's data directory away, start it with --join, and run doyen voters replace NAME on another voter",
		"voters_change":      "a change of the voters takes a long time: " + change(s.Change) + changeAdvice(s.Change),
		"voters_differ": fmt.Sprintf("this agent was started with --voters %s, but the voters are %s: the flag only sets the first roster; change the voters with doyen voters add or remove",
			w.Voters, strings.Join(election.Names(s.Roster.All(), nil), ",")),
	}[w.Code], barred(w.Barred))
}

// Differing is a warning that an agent's configured settings differ from the roster's; empty: they do not.
func Differing(given election.Settings, r *election.Roster) string {
	if !r.Follows() {
		return ""
	}
	used := r.Settings
	own := election.Settings{Algorithm: cmp.Or(given.Algorithm, used.Algorithm), Lease: cmp.Or(given.Lease, used.Lease)}
	if own == used {
		return ""
	}
	return fmt.Sprintf("this agent's configuration asks for algorithm %[1]s and lease %[2]s, and all agents follow the cluster's: %[3]s and %[4]s; remove there what differs and run doyen reload, or change it for all: doyen settings set algorithm=%[1]s lease=%[2]s",
		own.Algorithm, own.Lease, used.Algorithm, used.Lease)
}

// bracketed returns, in brackets, that the named agents can't be reached; empty: names is empty.
func bracketed(names string) string {
	if names == "" {
		return ""
	}
	return " (" + names + " can't be reached)"
}

// barred returns why an agent may neither vote nor lead until it is restarted.
func barred(b election.Barred) string {
	switch b.Code {
	case "data_dir_older":
		return fmt.Sprintf("this agent runs with an older copy of its data directory: %s knows of write %d, the newest here is %d. "+
			"Promises are lost, so this agent grants no votes and leads nothing. Stop it and restore the newest data directory; "+
			"if it no longer exists, move the directory away, start the agent with a new identity, and run on another voter: doyen voters replace %s",
			b.Agent, b.Known, b.Writes, b.Name)
	case "identity_changed":
		return fmt.Sprintf("%[1]s was a voter of a cluster that is still running (%[2]s), and has now formed a separate one: it leads nothing until it is restarted. Stop it, delete its data directory, start it with --join and without --voters, and run on a voter: doyen voters replace %[1]s",
			b.Name, b.Cluster)
	}
	return b.Detail
}

// changed returns a text about agents that the roster lists under another identity. A warning with Barred is about
// this agent. Any other such agent may be a stranger: with the cluster key, anyone can take a dead voter's name.
func changed(ws []elector.Warning, live func(string) (id, addr string)) string {
	return joined(ws, "; ", func(w elector.Warning) string {
		if w.Barred.Code != "" {
			return barred(w.Barred)
		}
		id, addr := live(w.Agent)
		return fmt.Sprintf("%[1]s can't vote: the roster lists a different identity under that name (%[2]s). Is the agent at %[4]s your host, with a new data directory? "+
			"If it is, put its original data directory back if it still exists (never a backup of it), or run on a voter: doyen voters replace %[1]s --id %[3]s; "+
			"if it is not, somebody else has the cluster key: run on a voter: doyen keys rotate --without %[3]s", w.Agent, w.Peer, id, addr)
	})
}

func foreign(name string, w elector.Warning) string {
	if w.Former {
		return fmt.Sprintf("%[1]s is an observer of another cluster (%[2]s; this agent's is %[3]s), of which %[4]s was a voter under an identity that is lost: if no voter of that cluster runs any more, stop %[1]s, delete its data directory and start it again, so that it joins this cluster; if a voter of that cluster still runs, this agent must join it: stop this agent, delete its data directory, start it with --join and without --voters",
			w.Agent, w.Cluster, w.Own, name)
	}
	return fmt.Sprintf("%s belongs to another cluster (%s; this agent's is %s): give one of the two another --cluster name, or wipe the data dir of the one that should join",
		w.Agent, w.Cluster, w.Own)
}

func doubted(s *elector.Status, name string, ws []elector.Warning) string {
	reports := joined(ws, "; ", func(w elector.Warning) string {
		return fmt.Sprintf("%s reports the voters %s, which this agent does not adopt: %s", w.Agent, w.Voters, doubt(w.Doubt))
	})
	others := election.Names(s.Roster.All(), func(v election.Voter) bool { return v.Peer != s.Self.Peer })
	return reports + ". If these are your own changes: start one of the voters this agent knows (" + strings.Join(others, ", ") +
		") for a moment; or stop this agent, move its data dir away, start it with --join and without --voters, and if it should vote, run on a voter: doyen voters replace " + name +
		". If a copy of this cluster runs somewhere, keep it away from this one: another --cluster name and key"
}

func doubt(d roster.Doubt) string {
	return cmp.Or(map[roster.Doubt]string{
		roster.Refused:     "an operator refused it (doyen voters restore)",
		roster.FromUnknown: "none of the voters this agent knows has reported it",
		roster.DropsMany:   "it drops several voters at once, and a majority of them still holds the present roster",
	}[d], "its driver is not one of the voters this agent knows")
}

// agents names the agents that warnings are about.
func agents(ws []elector.Warning) string {
	return joined(ws, ", ", func(w elector.Warning) string { return w.Agent })
}

func joined(ws []elector.Warning, between string, text func(elector.Warning) string) string {
	return strings.Join(each.Of(ws, text), between)
}
