package words

import (
	"fmt"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// TooManyCommands is a refusal by the agent, not by its elector: too many commands wait.
const TooManyCommands election.Denial = "too many commands"

// Refusal puts a refusal into words, with its code of the API.
func Refusal(r *election.Refusal) *api.ErrorDetail {
	code, text := refusal(r)
	return &api.ErrorDetail{Code: code, Message: text}
}

func refusal(r *election.Refusal) (code, text string) {
	name := string(r.Election)
	switch r.Why {
	case TooManyCommands:
		return api.CodeBusy, "too many commands at once"
	case election.DeniedElections:
		return api.CodeBusy, fmt.Sprintf("the agent holds %d elections already, and all of them have candidates", r.Count)
	case election.DeniedNotLeader:
		return api.CodeNotLeader, "this agent does not lead " + name
	case election.DeniedHandingOver:
		return api.CodeBusy, "this agent is handing over " + name + " already"
	case election.DeniedLeadsAlready:
		return api.CodeNoCandidate, "this agent leads " + name + " already"
	case election.DeniedNobodyElse:
		return api.CodeNoCandidate, "no other candidate could lead " + name + ": this agent would only lead it again"
	case election.DeniedTargetUnknown:
		return api.CodeNoCandidate, "the target is not a live member"
	case election.DeniedTargetUnable:
		return api.CodeNoCandidate, r.Agent + " can't lead " + name + " now: " + obstacle(r.Obstacle)
	case election.DeniedBarred:
		return api.CodeUnavailable, "this agent neither votes nor changes anything until it is restarted: " + barred(r.Barred)
	case election.DeniedQuestions:
		return api.CodeBusy, "too many questions to the voters at once; ask again"
	case election.DeniedNoAnswer:
		return api.CodeNoQuorum, "a majority of the voters did not answer, or did not agree, in time"
	case election.DeniedNoMajority:
		return api.CodeNoQuorum, "a majority of the voters can't be reached"
	case election.DeniedNoVoters:
		return api.CodeNoQuorum, NoVoters
	case election.DeniedNoRoster:
		return api.CodeNoQuorum, "the roster is not formed yet: the warning `formation` shows what it waits for"
	}
	return changeRefusal(r)
}

// NoVoters refuses whatever needs voters in a cluster that has none.
const NoVoters = "this cluster runs without quorum (--quorum=false): it has no voters"

// changeRefusal words a refusal of a change of the voters.
func changeRefusal(r *election.Refusal) (code, text string) {
	switch r.Why {
	case election.DeniedNotVoter:
		return api.CodeNotVoter, "this agent is not a voter: run the command on a voter"
	case election.DeniedRemoveNotVoter:
		return api.CodeNotFound, "an agent to remove is not a voter"
	case election.DeniedAddVoter:
		return api.CodeBadRequest, r.Agent + " is a voter already"
	case election.DeniedLastVoter:
		return api.CodeBadRequest, "the last voter can't be removed: add another one first"
	case election.DeniedNotConnected:
		return api.CodeNotFound, r.Agent + " is not connected"
	case election.DeniedBehind:
		return api.CodeNotConfirmed, "the voters are unchanged: " + r.Agent + " holds a different list of voters and does not adopt the present one; `doyen status` there shows why. " +
			startAgain(r.Agent) + ", and ask again"
	case election.DeniedOtherChange:
		return api.CodeBusy, "another change of the voters is under way: " + seeVoters
	case election.DeniedOvertaken:
		return api.CodeBusy, "another change of the voters came first: `doyen voters` shows what it did; ask again if this one is still wanted"
	case election.DeniedNotStarted:
		why := "this agent was not elected to make it"
		if r.Obstacle != 0 {
			why = "this agent can't be elected to make it, because " + obstacle(r.Obstacle)
		}
		return api.CodeNotConfirmed, "the change was not started: " + why + "; the voters are unchanged"
	case election.DeniedNotConfirmed:
		what := seeVoters
		if r.Change != nil && r.Change.Outcome {
			what = change(r.Change) + changeAdvice(r.Change)
		}
		return api.CodeNotConfirmed, "the change was not confirmed in time, and goes on: " + what
	case election.DeniedVotersLost:
		lost := r.Agent
		if lost == "" {
			lost = "a majority of the new voters"
		}
		return api.CodeNotConfirmed, "the voters are unchanged: " + lost + " was lost while the change was made; ask again once it is back"
	case election.DeniedCancelled:
		return api.CodeNotConfirmed, "the change was cancelled: the voters are unchanged"
	}
	return revisionRefusal(r)
}

// revisionRefusal words a refusal of a change of the cluster's settings or rights.
func revisionRefusal(r *election.Refusal) (code, text string) {
	switch r.Why {
	case election.DeniedOlderVersion:
		return api.CodeBusy, r.Agent + " runs an older version, which does not know settings and rights of the cluster: upgrade it first"
	case election.DeniedHeartbeat:
		return api.CodeBadRequest, "the heartbeat of " + r.Agent + " must be below a third of the lease: give it a shorter --heartbeat first, or choose a longer lease"
	case election.DeniedRights:
		return api.CodeBadRequest, fmt.Sprintf("there is room for %d rules and %d bytes: take other rules away first", election.MaxRights, election.MaxRightsSize)
	case election.DeniedNoSuchRight:
		return api.CodeNotFound, "there is no rule about " + string(r.Election) + ": everybody may lead it already"
	}
	return wayBackRefusal(r)
}

const seeVoters = "`doyen voters` shows what it waits for, `doyen voters cancel` takes it back"

// wayBackRefusal words a refusal about a change that is cancelled or to be undone.
func wayBackRefusal(r *election.Refusal) (code, text string) {
	switch r.Why {
	case election.DeniedNoChange:
		return api.CodeNotFound, "no change of the voters is under way"
	case election.DeniedCancelling:
		return api.CodeBusy, "the change is being cancelled already"
	case election.DeniedChangeSent:
		return api.CodeBusy, "the change can't be cancelled any more: its outcome was sent to the voters, and some may hold it already; to undo it, make the opposite change once it is done"
	case election.DeniedChangeEnded:
		return api.CodeBusy, "the change can't be cancelled any more: it has ended, and `doyen voters` shows the voters now; to undo it, make the opposite change"
	case election.DeniedDoneFirst:
		return api.CodeBusy, "the change was not cancelled, because it was done first; to undo it, make the opposite change"
	case election.DeniedNotCancelled:
		return api.CodeNotConfirmed, "the change was not cancelled in time: " + change(r.Change)
	case election.DeniedRestoring:
		return api.CodeBusy, "this agent is already writing the former voters to its disk"
	case election.DeniedNothingToGoBack:
		return api.CodeNotFound, "nothing to restore: this agent has not adopted a roster that dropped several voters at once, or has voted for another change since"
	case election.DeniedVoteOnItsWay:
		return api.CodeBusy, "this agent is writing a vote to its disk: ask again"
	case election.DeniedNotRestored:
		return api.CodeNotConfirmed, "the former voters are not on disk yet: this agent goes back to them as soon as its disk accepts the write"
	}
	return api.CodeUnavailable, string(r.Why)
}

// obstacle completes "it can't lead, because".
func obstacle(o election.Obstacle) string {
	switch o {
	case election.NotCandidate:
		return "it is not a candidate"
	case election.NoPriority:
		return "its priority is 0, its disk does not accept writes, or it runs late"
	case election.ShuttingDown:
		return "it is shutting down"
	case election.DrainingNow:
		return "it is draining"
	case election.HandingOver:
		return "it is handing over"
	case election.CantWrite:
		return "it can't write its promises"
	case election.SteppedDown:
		return "it has just stepped down"
	case election.NoRoster:
		return "it has no roster yet"
	case election.CutOff:
		return "it is cut off from the majority"
	case election.NoTermLeft:
		return "no higher term is left to ask for"
	case election.KeepsPromise:
		return "it still has to keep a promise from before its start"
	case election.NotConnected:
		return "it is not connected"
	case election.NotAllowed:
		return "the cluster's rights do not let it, or not with its priority: see doyen settings"
	case election.OlderVersion:
		return "its version does not know all that the roster has: upgrade it"
	case election.RunsLate:
		return "it runs late, and another candidate does not"
	}
	return "it does not answer"
}

// change says what a change of the voters waits for.
func change(c *election.ChangeStatus) string {
	if c == nil {
		return ""
	}
	own := c.Driver != "" && c.Name == ""
	text := "nobody drives it now"
	switch {
	case own:
		text = "this agent drives it"
	case c.Driver != "":
		text = c.Name + " drives it"
	}
	switch missing := strings.Join(c.Missing, ", "); {
	case missing != "" && own:
		text += ", and waits for " + missing + " to accept"
	case missing != "":
		text += "; this agent can't reach " + missing
	case c.PromisesEnd != 0:
		text += ", and waits until promises given under the former voters have ended"
	}
	if c.NeedsNew {
		text += "; it needs a majority of the former and one of the new voters, unless the agent that drove it still runs: there, doyen voters cancel goes back without the new ones"
	}
	return text
}

// changeAdvice says what to do about a change that does not end.
func changeAdvice(c *election.ChangeStatus) string {
	if c != nil && c.Outcome {
		return ". It can't be cancelled any more: bring the missing voters back, and keep this agent running, with its data dir, until then"
	}
	return ". Bring the missing voters back, or go back to the former voters: doyen voters cancel"
}

// startAgain says what to do with an agent that can't learn of the present voters.
func startAgain(name string) string {
	return "Start one of the voters it knows for a moment; or stop " + name + ", move its data dir away, and start it with --join and without --voters"
}
