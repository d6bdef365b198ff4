package election

// Refusal is why a command was not carried out, as facts. Package agent/words has the texts.
type Refusal struct {
	Why      Denial
	Election Name     // that the command is about
	Agent    string   // the name of the agent that stands in the way
	Obstacle Obstacle // why an agent can't lead
	Count    int      // of elections, when there are too many
	Change   *ChangeStatus
	Barred   Barred
}

// Denial is the kind of a Refusal.
type Denial string

const (
	DeniedElections       Denial = "too many elections"
	DeniedNotLeader       Denial = "not the leader"
	DeniedHandingOver     Denial = "handing over already"
	DeniedLeadsAlready    Denial = "leads already"
	DeniedNobodyElse      Denial = "nobody else can lead"
	DeniedTargetUnknown   Denial = "target unknown"
	DeniedTargetUnable    Denial = "target unable"
	DeniedBarred          Denial = "barred"
	DeniedQuestions       Denial = "too many questions"
	DeniedNoAnswer        Denial = "no answer from a majority"
	DeniedNoMajority      Denial = "no majority"
	DeniedNoVoters        Denial = "no voters"
	DeniedNoRoster        Denial = "no roster"
	DeniedNotVoter        Denial = "not a voter"
	DeniedRemoveNotVoter  Denial = "remove: not a voter"
	DeniedAddVoter        Denial = "add: a voter already"
	DeniedLastVoter       Denial = "last voter"
	DeniedNotConnected    Denial = "not connected"
	DeniedBehind          Denial = "behind"
	DeniedOtherChange     Denial = "another change"
	DeniedOvertaken       Denial = "another change came first"
	DeniedNotStarted      Denial = "not started"
	DeniedNotConfirmed    Denial = "not confirmed"
	DeniedVotersLost      Denial = "new voters lost"
	DeniedCancelled       Denial = "cancelled"
	DeniedNoChange        Denial = "no change"
	DeniedCancelling      Denial = "cancelling already"
	DeniedChangeSent      Denial = "outcome sent"
	DeniedChangeEnded     Denial = "change ended"
	DeniedDoneFirst       Denial = "done first"
	DeniedNotCancelled    Denial = "not cancelled in time"
	DeniedRestoring       Denial = "restoring already"
	DeniedNothingToGoBack Denial = "nothing to restore"
	DeniedVoteOnItsWay    Denial = "a vote is being written"
	DeniedNotRestored     Denial = "not restored in time"
	DeniedOlderVersion    Denial = "older version"
	DeniedHeartbeat       Denial = "heartbeat does not fit"
	DeniedRights          Denial = "too many rights"
	DeniedNoSuchRight     Denial = "no such right"
)

// Obstacle is a reason why an agent can't lead an election now.
type Obstacle uint8

const (
	NotCandidate  Obstacle = iota + 1 // 0: it can
	NoPriority                        // its priority is 0, its disk fails, or it runs late
	ShuttingDown                      //
	DrainingNow                       //
	HandingOver                       //
	CantWrite                         // it can't write its promises
	SteppedDown                       // it stepped down a moment ago
	NoRoster                          // it has no roster yet
	CutOff                            // it can't reach a majority of the voters
	NoTermLeft                        // there is no term that it could ask for
	KeepsPromise                      // it keeps a promise from before its start
	NotConnected                      //
	DoesNotAnswer                     //
	NotAllowed                        // the roster's rights do not let it lead the election
	OlderVersion                      // it does not know all that the roster says
	RunsLate                          // it does what is due much too late, and another candidate does not
)

// ChangeStatus is a change of the voters under way, as one agent knows it. Only the driver
// of the change knows what it waits for.
type ChangeStatus struct {
	Driver      PeerID   // empty: no agent is known to drive it
	Name        string   // the driver's; empty: this agent drives it
	Committed   bool     // majorities of both sets of voters accepted it
	Back        bool     // it goes back to the former voters
	Outcome     bool     // this agent has proposed the outcome: the change can't be cancelled any more
	NeedsNew    bool     // the change can't end without a majority of the new voters as well
	Missing     []string // at the driver: the voters that have not accepted; elsewhere: those out of reach
	PromisesEnd Instant  // when all promises under the former voters have ended; 0: unknown, or there are none
}
