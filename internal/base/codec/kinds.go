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

// kinds has every kind of message. It does not change after the program's start.
var kinds = []kind{
	of(1, checkBullyElection),
	of(2, checkBullyAnswer),
	of(3, checkBullyDecline),
	of(4, checkBullyCoordinator),
	of(5, checkRingElection),
	of(6, checkRingAck),
	of(7, checkRingElected),
	of(8, checkVoteRequest),
	of(9, checkVoteGrant),
	of(10, checkVoteRefusal),
	of(11, checkRelease),
	of(12, checkHeartbeat),
	of(13, checkHeartbeatAck),
	of(14, checkInquiry),
	of(15, checkReport),
	of(16, checkGenesisPropose),
	of(17, checkGenesisAccept),
	of(18, checkGenesisRefuse),
	of(20, checkRosterPropose),
	of(21, checkRosterAccept),
	of(22, checkRosterRefuse),
	of(23, checkCandidacies),
	of(24, checkCandidaciesAck),
	of(25, checkRosterCancel),
	// 26 was the Obituary of 0.3.0. An agent of 0.3.0 that receives one passes it on.
	of(27, checkCall),
	of(28, checkCallAnswer),
	of(29, checkWordWrite),
	of(30, checkWordAck),
	of(31, checkWordsWanted),
	of(32, checkWords),
}

// The same kinds by number and by type. These maps do not change either.
var (
	byNumber = indexKinds(func(k kind) uint64 { return k.number })
	byType   = indexKinds(func(k kind) reflect.Type { return k.typ })
)

func of[M election.Message](number uint64, check func(M) error) kind {
	var none M
	return kind{
		number: number,
		name:   election.Kind(none),
		typ:    reflect.TypeFor[M](),
		decode: func(body []byte) (election.Message, error) {
			var m M
			if err := messages.Unmarshal(body, &m); err != nil {
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
