package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/roster"
)

// denials reads all values of election.Denial from the source file.
func denials(t *testing.T) []election.Denial {
	file, err := parser.ParseFile(token.NewFileSet(), "../../election/refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := []election.Denial{words.TooManyCommands}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if l, ok := v.Values[0].(*ast.BasicLit); ok && strings.HasPrefix(v.Names[0].Name, "Denied") {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, election.Denial(text))
			}
		}
		return true
	})
	if len(all) < 30 {
		t.Fatalf("found %d", len(all))
	}
	return all
}

func TestEachRefusalHasItsOwnWords(t *testing.T) {
	said := map[string]election.Denial{}
	for _, why := range denials(t) {
		r := words.Refusal(&election.Refusal{Why: why, Election: "pay", Agent: "x"})
		if other, taken := said[r.Message]; taken || r.Message == string(why) || r.Code == "" {
			t.Errorf("%s: %+v; the same for %q", why, r, other)
		}
		said[r.Message] = why
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	outcome := &election.ChangeStatus{Driver: "pa", Outcome: true, Missing: []string{"d"}}
	for _, c := range []struct {
		refusal election.Refusal
		code    string
		want    string
	}{
		{election.Refusal{Why: election.DeniedNotConfirmed, Change: outcome}, api.CodeNotConfirmed, "this agent drives it, and waits for d to accept. It can't be cancelled any more: bring the missing voters back, and keep this agent running"},
		{election.Refusal{Why: election.DeniedNotConfirmed, Change: &election.ChangeStatus{}}, api.CodeNotConfirmed, "and goes on: `doyen voters` shows"},
		{election.Refusal{Why: election.DeniedNotCancelled, Change: &election.ChangeStatus{Driver: "pb", Name: "b", Missing: []string{"c", "d"}, NeedsNew: true}}, api.CodeNotConfirmed, "b drives it; this agent can't reach c, d; it needs a majority of the former"},
		{election.Refusal{Why: election.DeniedNotCancelled, Change: &election.ChangeStatus{PromisesEnd: 7}}, api.CodeNotConfirmed, "nobody drives it now, and waits until promises"},
		{election.Refusal{Why: election.DeniedNotStarted}, api.CodeNotConfirmed, "this agent was not elected to make it; the voters are unchanged"},
		{election.Refusal{Why: election.DeniedNotStarted, Obstacle: election.CutOff}, api.CodeNotConfirmed, "because it is cut off from the majority; the voters are unchanged"},
		{election.Refusal{Why: election.DeniedVotersLost}, api.CodeNotConfirmed, "a majority of the new voters was lost"},
		{election.Refusal{Why: election.DeniedBehind, Agent: "x"}, api.CodeNotConfirmed, "the voters are unchanged: x holds a different list of voters"},
		{election.Refusal{Why: election.DeniedTargetUnable, Election: "pay", Agent: "b", Obstacle: election.DrainingNow}, api.CodeNoCandidate, "b can't lead pay now: it is draining"},
		{election.Refusal{Why: election.DeniedBarred, Barred: election.Barred{Code: "data_dir_shared", Detail: "two agents use it"}}, api.CodeUnavailable, "until it is restarted: two agents use it"},
	} {
		if got := words.Refusal(&c.refusal); got.Code != c.code || !strings.Contains(got.Message, c.want) {
			t.Errorf("%+v, want %s: %q", got, c.code, c.want)
		}
	}
}

func TestObstaclesHaveTheirOwnWords(t *testing.T) {
	said := map[string]bool{}
	for o := election.NotCandidate; o <= election.DoesNotAnswer; o++ {
		text := words.Refusal(&election.Refusal{Why: election.DeniedTargetUnable, Obstacle: o}).Message
		if said[text] {
			t.Errorf("%d: %q, as another", o, text)
		}
		said[text] = true
	}
}

func live(name string) (id, addr string) { return "ID-of-" + name, "10.0.0.4:7946" }

func TestWarningsSayWhatToDo(t *testing.T) {
	status := elector.Status{
		Self: election.Holder{Peer: "pa"}, Quorum: elector.QuorumStatus{Voters: 3, Reachable: 3},
		Change: &election.ChangeStatus{Driver: "pa", Outcome: true, Missing: []string{"d"}},
		Roster: &election.Roster{Voters: []election.Voter{{Name: "c", Peer: "pc"}, {Name: "a", Peer: "pa"}, {Name: "b", Peer: "pb"}}},
		Warnings: []elector.Warning{
			{Code: "data_dir_older", Barred: election.Barred{Code: "data_dir_older", Name: "a", Agent: "b", Known: 7, Writes: 5}},
			{Code: "disk_failing"},
			{Code: "foreign_cluster", Agent: "o", Cluster: "old", Own: "new", Former: true},
			{Code: "foreign_cluster", Agent: "p", Cluster: "old", Own: "new"},
			{Code: "formation", Forming: quorum.Problem{Why: quorum.AwaitsAgents, Agents: []string{"b"}}},
			{Code: "identity_changed", Agent: "d", Peer: "pd"},
			{Code: "identity_changed", Agent: "e", Peer: "pe"},
			{Code: "quorum_edge"},
			{Code: "quorum_lost", Voters: "b, c"},
			{Code: "roster_doubted", Agent: "z", Voters: "x,y", Doubt: roster.FromUnknown},
			{Code: "voter_behind", Agent: "x"},
			{Code: "voter_data_dir_older", Agent: "b"},
			{Code: "voter_data_dir_older", Agent: "c"},
			{Code: "voter_disk_failing", Agent: "b"},
			{Code: "voter_term_leap", Agent: "d"},
			{Code: "voters_change"},
			{Code: "voters_differ", Voters: "a,b,d"},
		},
	}
	got := words.Warnings(&status, "a", live)
	for i, want := range []struct{ code, text string }{
		{"data_dir_older", "b knows of write 7, the newest here is 5"},
		{"disk_failing", "free space on the disk"},
		{"foreign_cluster", "o is an observer of another cluster (old; this agent's is new), of which a was a voter under an identity that is lost: if no voter of that cluster runs any more, stop o, delete its data directory"},
		{"formation", "nobody can vote: waits for b"},
		{"identity_changed", "(pd). Is the agent at 10.0.0.4:7946 your host, with a new data directory? If it is, put its original data directory back if it still exists (never a backup of it), or run on a voter: doyen voters replace d --id ID-of-d; "},
		{"quorum_edge", "with 3 voters, none may be lost"},
		{"quorum_lost", "nobody can lead until more voters are back (b, c can't be reached)"},
		{"roster_doubted", "z reports the voters x,y, which this agent does not adopt: none of the voters this agent knows has reported it. If these are your own changes: start one of the voters this agent knows (b, c) for a moment"},
		{"voter_behind", "x holds an older list of voters"},
		{"voter_data_dir_older", "the data directory of b, c is older"},
		{"voter_disk_failing", "b can't write promises"},
		{"voter_term_leap", "d reported a term far above"},
		{"voters_change", "waits for d to accept. It can't be cancelled any more"},
		{"voters_differ", "started with --voters a,b,d, but the voters are a,b,c"},
	} {
		if i >= len(got) || got[i].Code != want.code || !strings.Contains(got[i].Message, want.text) {
			t.Fatalf("warning %d: %+v, want %+v", i, got[min(i, len(got)-1)], want)
		}
	}
	if len(got) != 14 {
		t.Errorf("%d warnings, want one of each code", len(got))
	}
	status.Quorum.Reachable = 2
	status.Warnings = []elector.Warning{{Code: "foreign_cluster", Agent: "p", Cluster: "old", Own: "new"}, {Code: "quorum_edge"},
		{Code: "same_identity", Barred: election.Barred{Code: "same_identity", Detail: "a copy runs"}}}
	got = words.Warnings(&status, "a", live)
	if len(got) != 3 || !strings.Contains(got[0].Message, "p belongs to another cluster (old; this agent's is new)") ||
		!strings.Contains(got[1].Message, "bring the missing voters back") || got[2].Message != "a copy runs" {
		t.Errorf("%+v", got)
	}
}

func TestAMissingRosterIsExplained(t *testing.T) {
	refused := func(reason election.Objection, detail string) []quorum.Refused {
		return []quorum.Refused{{Agent: "b", Reason: reason, Detail: detail}}
	}
	for _, c := range []struct {
		problem quorum.Problem
		want    string
	}{
		{quorum.Problem{}, ""},
		{quorum.Problem{Why: quorum.AwaitsAgents, Agents: []string{"b", "c"}}, "waits for b, c"},
		{quorum.Problem{Why: quorum.AwaitsRoster}, "waits for a member that knows the roster"},
		{quorum.Problem{Why: quorum.AwaitsCommit, Agents: []string{"a"}}, "waits for a to commit"},
		{quorum.Problem{Why: quorum.AwaitsProposal, Agents: []string{"a"}}, "waits for the proposal of a"},
		{quorum.Problem{Why: quorum.PendingHere, Agents: []string{"a"}}, "a formation, proposed by a, is pending here; if it can't finish, restart this agent once with --reset-genesis"},
		{quorum.Problem{Why: quorum.CommittedElsewhere}, "another formation is committed elsewhere; restart this agent once with --reset-genesis to join it"},
		{quorum.Problem{Why: quorum.RecordLost}, "a committed roster names this agent, but its own record of it is lost"},
		{quorum.Problem{Why: quorum.RefusedThere, Refused: refused(election.GenesisPendingFormer, "a")},
			"b refuses: another formation, proposed by a under another identity, is pending there; if that can't finish, restart b once with --reset-genesis"},
		{quorum.Problem{Why: quorum.RefusedHere, Agents: []string{"a"}, Voters: "a,b,c", Refused: refused(election.GenesisPending, "d")},
			"a proposes the voters a,b,c, but this agent refuses: another formation, proposed by d, is pending here; if that can't finish, restart this agent once with --reset-genesis"},
		{quorum.Problem{Why: quorum.RefusedThere, Refused: append(refused(election.GenesisOtherVoters, "a,c"), refused(election.GenesisElsewhere, "x")...)},
			"b refuses: it was started with --voters a,c; set the same on all; b refuses: it belongs to another cluster (x) already"},
		{quorum.Problem{Why: quorum.RefusedThere, Refused: refused(99, "y")}, "b refuses: for a reason that this version does not know (99: y)"},
	} {
		if got := words.Forming(c.problem); got != c.want {
			t.Errorf("%+v: %q, want %q", c.problem, got, c.want)
		}
	}
}
