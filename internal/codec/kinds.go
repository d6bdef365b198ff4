package codec

import (
	"reflect"

	"github.com/doyen-election/doyen/election"
)

// kind is one row of the table of messages.
type kind struct {
	number uint64 // on the wire: never changed, and never given to another kind
	name   string // in metrics: never changed
	typ    reflect.Type
	decode func(body []byte) (election.Message, error)
	check  func(election.Message) error
}

// kinds is every kind of message. It is not changed after the program's start.
var kinds = []kind{
	of(1, "BullyElection", checkBullyElection),
	of(2, "BullyAnswer", checkBullyAnswer),
	of(3, "BullyDecline", checkBullyDecline),
	of(4, "BullyCoordinator", checkBullyCoordinator),
	of(5, "RingElection", checkRingElection),
	of(6, "RingAck", checkRingAck),
	of(7, "RingElected", checkRingElected),
	of(8, "VoteRequest", checkVoteRequest),
	of(9, "VoteGrant", checkVoteGrant),
	of(10, "VoteRefusal", checkVoteRefusal),
	of(11, "Release", checkRelease),
	of(12, "Heartbeat", checkHeartbeat),
	of(13, "HeartbeatAck", checkHeartbeatAck),
	of(14, "Inquiry", checkInquiry),
	of(15, "Report", checkReport),
	of(16, "GenesisPropose", checkGenesisPropose),
	of(17, "GenesisAccept", checkGenesisAccept),
	of(18, "GenesisRefuse", checkGenesisRefuse),
	of(20, "RosterPropose", checkRosterPropose),
	of(21, "RosterAccept", checkRosterAccept),
	of(22, "RosterRefuse", checkRosterRefuse),
	of(23, "Candidacies", checkCandidacies),
	of(24, "CandidaciesAck", checkCandidaciesAck),
	of(25, "RosterCancel", checkRosterCancel),
	of(26, "Obituary", checkObituary),
	of(27, "Call", checkCall),
	of(28, "CallAnswer", checkCallAnswer),
}

// The same kinds by number and by type, which are not changed either.
var (
	byNumber = indexKinds(func(k kind) uint64 { return k.number })
	byType   = indexKinds(func(k kind) reflect.Type { return k.typ })
)

func of[M election.Message](number uint64, name string, check func(M) error) kind {
	return kind{
		number: number,
		name:   name,
		typ:    reflect.TypeFor[M](),
		decode: func(body []byte) (election.Message, error) {
			var m M
			if err := messages.unmarshal(body, &m); err != nil {
				return nil, err
			}
			return m, nil
		},
		check: func(m election.Message) error { return check(m.(M)) },
	}
}

func indexKinds[K comparable](key func(kind) K) map[K]kind {
	index := make(map[K]kind, len(kinds))
	for _, k := range kinds {
		index[key(k)] = k
	}
	return index
}
