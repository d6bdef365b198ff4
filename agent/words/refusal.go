package words

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// TooManyCommands is a refusal by the agent's loop, before the elector gets the command: too many commands wait.
const TooManyCommands election.Denial = "too many commands"

// Refusal returns a refusal as the API shows it: with a code and a text.
func Refusal(r *election.Refusal) *api.ErrorDetail {
	name := string(r.Election)
	said, known := map[election.Denial]api.ErrorDetail{
		TooManyCommands:                {Code: api.CodeBusy, Message: "too many commands at once"},
		election.DeniedElections:       {Code: api.CodeBusy, Message: fmt.Sprintf("the agent holds %d elections already, and all of them have candidates", r.Count)},
		election.DeniedNotLeader:       {Code: api.CodeNotLeader, Message: "this agent does not lead " + name},
		election.DeniedHandingOver:     {Code: api.CodeBusy, Message: "this agent is handing over " + name + " already"},
		election.DeniedLeadsAlready:    {Code: api.CodeNoCandidate, Message: "this agent leads " + name + " already"},
		election.DeniedNobodyElse:      {Code: api.CodeNoCandidate, Message: "no other candidate could lead " + name + ": this agent would only lead it again"},
		election.DeniedTargetUnknown:   {Code: api.CodeNoCandidate, Message: "the target is not a live member"},
		election.DeniedTargetUnable:    {Code: api.CodeNoCandidate, Message: r.Agent + " can't lead " + name + " now: " + obstacle(r.Obstacle)},
		election.DeniedBarred:          {Code: api.CodeUnavailable, Message: "this agent neither votes nor changes anything until it is restarted: " + barred(r.Barred)},
		election.DeniedQuestions:       {Code: api.CodeBusy, Message: "too many questions to the voters at once; ask again"},
		election.DeniedNoAnswer:        {Code: api.CodeNoQuorum, Message: "a majority of the voters did not answer, or did not agree, in time"},
		election.DeniedNoMajority:      {Code: api.CodeNoQuorum, Message: "a majority of the voters can't be reached"},
		election.DeniedNoVoters:        {Code: api.CodeNoQuorum, Message: NoVoters},
		election.DeniedNoRoster:        {Code: api.CodeNoQuorum, Message: "the roster is not formed yet: the warning `formation` shows what it waits for"},
		election.DeniedNotVoter:        {Code: api.CodeNotVoter, Message: "this agent is not a voter: run the command on a voter"},
		election.DeniedRemoveNotVoter:  {Code: api.CodeNotFound, Message: "an agent to remove is not a voter"},
		election.DeniedAddVoter:        {Code: api.CodeBadRequest, Message: r.Agent + " is a voter already"},
		election.DeniedLastVoter:       {Code: api.CodeBadRequest, Message: "the last voter can't be removed: add another one first"},
		election.DeniedNotConnected:    {Code: api.CodeNotFound, Message: r.Agent + " is not connected"},
		election.DeniedBehind:          {Code: api.CodeNotConfirmed, Message: "the voters are unchanged: " + r.Agent + " holds a different list of voters and does not adopt the present one; `doyen status` there shows why. " + startAgain(r.Agent) + ", and ask again"},
		election.DeniedOtherChange:     {Code: api.CodeBusy, Message: "another change of the voters is under way: " + seeVoters},
		election.DeniedOvertaken:       {Code: api.CodeBusy, Message: "another change of the voters came first: `doyen voters` shows what it did; ask again if this one is still wanted"},
		election.DeniedCancelled:       {Code: api.CodeNotConfirmed, Message: "the change was cancelled: the voters are unchanged"},
		election.DeniedOlderVersion:    {Code: api.CodeBusy, Message: r.Agent + " runs an older version, which does not know this: upgrade it first"},
		election.DeniedFirstWord:       {Code: api.CodeUnavailable, Message: "the first word of a cluster is written while all voters are connected, so that no voter is of a version that does not know words: " + r.Agent + " is not connected"},
		election.DeniedHeartbeat:       {Code: api.CodeBadRequest, Message: "the heartbeat of " + r.Agent + " must be below a third of the lease: give it a shorter --heartbeat first, or choose a longer lease"},
		election.DeniedRights:          {Code: api.CodeBadRequest, Message: fmt.Sprintf("there is room for %d rules and %d bytes: take other rules away first", election.MaxRights, election.MaxRightsSize)},
		election.DeniedNoSuchRight:     {Code: api.CodeNotFound, Message: "there is no rule about " + name + ": everybody may lead it already"},
		election.DeniedNoWords:         {Code: api.CodeNoQuorum, Message: name + " has no word: without quorum elections have none"},
		election.DeniedWordText:        {Code: api.CodeTooLarge, Message: "the word in " + name + " must be UTF-8 and at most 1024 bytes long"},
		election.DeniedWordBusy:        {Code: api.CodeBusy, Message: "another write of the word in " + name + " is under way: wait for its answer"},
		election.DeniedWordChanged:     {Code: api.CodeWordChanged, Message: "the word in " + name + " is not the one that was to be replaced: this answer has it"},
		election.DeniedWordRemains:     {Code: api.CodeNotAllVoters, Message: "the word in " + name + " is empty, but not deleted yet: " + remains(r.Agent)},
		election.DeniedWordUnknown:     {Code: api.CodeNotConfirmed, Message: "the word in " + name + " was not confirmed before this agent stopped leading: the next leader knows whether it was written"},
		election.DeniedNoChange:        {Code: api.CodeNotFound, Message: "no change of the voters is under way"},
		election.DeniedCancelling:      {Code: api.CodeBusy, Message: "the change is being cancelled already"},
		election.DeniedChangeSent:      {Code: api.CodeBusy, Message: "the change can't be cancelled any more: its outcome was sent to the voters, and some may hold it already; to undo it, make the opposite change once it is done"},
		election.DeniedChangeEnded:     {Code: api.CodeBusy, Message: "the change can't be cancelled any more: it has ended, and `doyen voters` shows the voters now; to undo it, make the opposite change"},
		election.DeniedDoneFirst:       {Code: api.CodeBusy, Message: "the change was not cancelled, because it was done first; to undo it, make the opposite change"},
		election.DeniedNotCancelled:    {Code: api.CodeNotConfirmed, Message: "the change was not cancelled in time: " + change(r.Change)},
		election.DeniedRestoring:       {Code: api.CodeBusy, Message: "this agent is already writing the former voters to its disk"},
		election.DeniedNothingToGoBack: {Code: api.CodeNotFound, Message: "nothing to restore: this agent has not adopted a roster that dropped several voters at once, or has voted for another change since"},
		election.DeniedVoteOnItsWay:    {Code: api.CodeBusy, Message: "this agent is writing a vote to its disk: ask again"},
		election.DeniedNotRestored:     {Code: api.CodeNotConfirmed, Message: "the former voters are not on disk yet: this agent goes back to them as soon as its disk accepts the write"},
		election.DeniedNotStarted:      {Code: api.CodeNotConfirmed, Message: "the change was not started: " + notElected(r.Obstacle) + "; the voters are unchanged"},
		election.DeniedNotConfirmed:    {Code: api.CodeNotConfirmed, Message: "the change was not confirmed in time, and goes on: " + goesOn(r.Change)},
		election.DeniedVotersLost:      {Code: api.CodeNotConfirmed, Message: "the voters are unchanged: " + cmp.Or(r.Agent, "a majority of the new voters") + " was lost while the change was made; ask again once it is back"},
	}[r.Why]
	if !known {
		return &api.ErrorDetail{Code: api.CodeUnavailable, Message: string(r.Why)}
	}
	return &said
}

// remains returns what keeps a word from being deleted: a voter, or a change of the voters.
func remains(voter string) string {
	if voter == "" {
		return "the voters are being changed; delete it again after that"
	}
	return voter + " has not confirmed that, and every voter must; bring it back or remove it from the voters, and delete the word again"
}

// Word is a word as the API shows it; nil: there is none.
func Word(w election.Word) *api.Word {
	if w == (election.Word{}) {
		return nil
	}
	return &api.Word{WordID: WordID(w.ID), Text: w.Text}
}

// WordID returns the rank of a word as the API shows it.
func WordID(r election.WordRank) api.WordID { return api.WordID{Term: uint64(r.Term), Seq: r.Seq} }

// NoVoters is the text of refusals in a cluster that has no voters.
const NoVoters = "this cluster runs without quorum (--quorum=false): it has no voters"

const seeVoters = "`doyen voters` shows what it waits for, `doyen voters cancel` takes it back"

func notElected(o election.Obstacle) string {
	if o == 0 {
		return "this agent was not elected to make it"
	}
	return "this agent can't be elected to make it, because " + obstacle(o)
}

func goesOn(c *election.ChangeStatus) string {
	if c == nil || !c.Outcome {
		return seeVoters
	}
	return change(c) + changeAdvice(c)
}

// obstacle returns the end of a sentence that starts with "it can't lead, because".
func obstacle(o election.Obstacle) string {
	return cmp.Or(map[election.Obstacle]string{
		election.NotCandidate: "it is not a candidate",
		election.NoPriority:   "its priority is 0, its disk does not accept writes, its check fails, or it runs late",
		election.ShuttingDown: "it is shutting down",
		election.DrainingNow:  "it is draining",
		election.HandingOver:  "it is handing over",
		election.CantWrite:    "it can't write its promises",
		election.SteppedDown:  "it has just stepped down",
		election.NoRoster:     "it has no roster yet",
		election.CutOff:       "it is cut off from the majority",
		election.NoTermLeft:   "no higher term is left to ask for",
		election.KeepsPromise: "it still has to keep a promise from before its start",
		election.NotConnected: "it is not connected",
		election.NotAllowed:   "the cluster's rights do not let it, or not with its priority: see doyen settings",
		election.OlderVersion: "its version does not know all that the roster has: upgrade it",
		election.RunsLate:     "it runs late or its check fails, and another candidate can lead",
	}[o], "it does not answer")
}

// change returns what a change of the voters waits for.
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

// changeAdvice returns what to do about a change of the voters that does not end.
func changeAdvice(c *election.ChangeStatus) string {
	if c != nil && c.Outcome {
		return ". It can't be cancelled any more: bring the missing voters back, and keep this agent running, with its data dir, until then"
	}
	return ". Bring the missing voters back, or go back to the former voters: doyen voters cancel"
}

// startAgain is the advice for an agent that can't learn which agents are voters now.
func startAgain(name string) string {
	return "Start one of the voters it knows for a moment; or stop " + name + ", move its data dir away, and start it with --join and without --voters"
}
