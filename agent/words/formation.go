package words

import (
	"fmt"
	"strings"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/quorum"
)

// Forming says why there is no first roster yet.
func Forming(p quorum.Problem) string {
	awaited := strings.Join(p.Agents, ", ")
	switch p.Why {
	case quorum.PendingHere:
		return fmt.Sprintf("a formation, proposed by %s, is pending here; if it can't finish, restart this agent once with --reset-genesis", awaited)
	case quorum.CommittedElsewhere:
		return "another formation is committed elsewhere; restart this agent once with --reset-genesis to join it"
	case quorum.RecordLost:
		return "a committed roster names this agent, but its own record of it is lost"
	case quorum.RefusedHere:
		return fmt.Sprintf("%s proposes the voters %s, but this agent refuses: %s", awaited, p.Voters, objection(p.Refused[0], "here", "this agent"))
	case quorum.RefusedThere:
		return strings.Join(each.Of(p.Refused, func(r quorum.Refused) string {
			return r.Agent + " refuses: " + objection(r, "there", r.Agent)
		}), "; ")
	case quorum.AwaitsAgents:
		return "waits for " + awaited
	case quorum.AwaitsRoster:
		return "waits for a member that knows the roster"
	case quorum.AwaitsCommit:
		return "waits for " + awaited + " to commit"
	case quorum.AwaitsProposal:
		return "waits for the proposal of " + awaited
	}
	return ""
}

// objection says why an agent refuses a first roster.
func objection(r quorum.Refused, where, who string) string {
	pending := func(by string) string {
		return fmt.Sprintf("another formation, proposed by %s, is pending %s; if that can't finish, restart %s once with --reset-genesis", by, where, who)
	}
	switch r.Reason {
	case election.GenesisInvalid:
		return "it is invalid"
	case election.GenesisKnown:
		return "it is committed " + where + " already"
	case election.GenesisElsewhere:
		return "it belongs to another cluster (" + r.Detail + ") already"
	case election.GenesisOtherVoters:
		return fmt.Sprintf("it was started with --voters %s; set the same on all", r.Detail)
	case election.GenesisOtherIdentity:
		return "it has a different identity from the one named"
	case election.GenesisPending:
		return pending(r.Detail)
	case election.GenesisPendingFormer:
		return pending(r.Detail + " under another identity")
	}
	return fmt.Sprintf("for a reason that this version does not know (%d: %s)", r.Reason, r.Detail)
}
