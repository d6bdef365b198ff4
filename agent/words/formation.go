package words

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/quorum"
)

// Forming returns why the first roster is not formed yet.
func Forming(p quorum.Problem) string {
	awaited := strings.Join(p.Agents, ", ")
	switch p.Why {
	case quorum.RefusedHere:
		return fmt.Sprintf("%s proposes the voters %s, but this agent refuses: %s", awaited, p.Voters, objection(p.Refused[0], "here", "this agent"))
	case quorum.RefusedThere:
		return strings.Join(each.Of(p.Refused, func(r quorum.Refused) string {
			return r.Agent + " refuses: " + objection(r, "there", r.Agent)
		}), "; ")
	}
	return map[quorum.Trouble]string{
		quorum.PendingHere:        "a formation, proposed by " + awaited + ", is pending here; if it can't finish, restart this agent once with --reset-genesis",
		quorum.CommittedElsewhere: "another formation is committed elsewhere; restart this agent once with --reset-genesis to join it",
		quorum.RecordLost:         "a committed roster names this agent, but its own record of it is lost",
		quorum.AwaitsAgents:       "waits for " + awaited,
		quorum.AwaitsRoster:       "waits for a member that knows the roster",
		quorum.AwaitsCommit:       "waits for " + awaited + " to commit",
		quorum.AwaitsProposal:     "waits for the proposal of " + awaited,
	}[p.Why]
}

// objection returns why an agent refuses a first roster.
func objection(r quorum.Refused, where, who string) string {
	pending := func(by string) string {
		return fmt.Sprintf("another formation, proposed by %s, is pending %s; if that can't finish, restart %s once with --reset-genesis", by, where, who)
	}
	return cmp.Or(map[election.Objection]string{
		election.GenesisInvalid:       "it is invalid",
		election.GenesisKnown:         "it is committed " + where + " already",
		election.GenesisElsewhere:     "it belongs to another cluster (" + r.Detail + ") already",
		election.GenesisOtherVoters:   "it was started with --voters " + r.Detail + "; set the same on all",
		election.GenesisOtherIdentity: "it has a different identity from the one named",
		election.GenesisPending:       pending(r.Detail),
		election.GenesisPendingFormer: pending(r.Detail + " under another identity"),
	}[r.Reason], fmt.Sprintf("for a reason that this version does not know (%d: %s)", r.Reason, r.Detail))
}
