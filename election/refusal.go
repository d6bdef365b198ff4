package election

// Refusal is why a command was not carried out, as facts. Package agent/words turns them into text.
type Refusal struct {
	Why      Denial
	Election Name     // the election that the command is about
	Agent    string   // the name of the agent that is the reason for the refusal
	Obstacle Obstacle // why that agent can't lead
	Count    int      // how many elections, when there are too many
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
	DeniedFirstWord       Denial = "voter not connected for the first word" // Agent
	DeniedNoWords         Denial = "no words"
	DeniedWordText        Denial = "word too long or not UTF-8"
	DeniedWordBusy        Denial = "another write of the word"
	DeniedWordChanged     Denial = "word changed"
	DeniedWordUnknown     Denial = "word not confirmed"
	DeniedWordRemains     Denial = "word not deleted everywhere" // Agent: a voter that has not confirmed the deletion; empty: the voters are being changed
)

// Obstacle is a reason why an agent can't lead an election now. 0: it can lead.
type Obstacle uint8

const (
	NotCandidate  Obstacle = iota + 1
	NoPriority             // its priority is 0, its disk or its check fails, or it runs late
	ShuttingDown           //
	DrainingNow            //
	HandingOver            //
	CantWrite              // it can't write its promises
	SteppedDown            // it stepped down a moment ago, and stands down
	NoRoster               // it has no roster yet
	CutOff                 // it can't reach a majority of the voters
	NoTermLeft             // no term is left that it could ask for
	KeepsPromise           // a promise from before its start still runs
	NotConnected           //
	DoesNotAnswer          //
	NotAllowed             // the roster's rights do not let it lead the election
	OlderVersion           // it can't read all that the roster contains
	RunsLate               // it runs much too late or its check fails, while another candidate can lead
)

// ChangeStatus is the change of the voters that is in progress, as one agent knows it. Only the
// driver of the change knows which voters it waits for.
type ChangeStatus struct {
	Driver      PeerID   // empty: the driver is not known
	Name        string   // the driver's name; empty: this agent is the driver
	Committed   bool     // majorities of both sets of voters have accepted the joint roster
	Back        bool     // the change goes back to the former voters
	Outcome     bool     // this agent has proposed the outcome, so the change can't be cancelled any more
	NeedsNew    bool     // the change can end only with a majority of the new voters, besides one of the former
	Missing     []string // on the driver: the voters that have not accepted; on others: the voters out of reach
	PromisesEnd Instant  // when all promises under the former voters have expired; 0: not known, or there are none
}
