package codec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"github.com/doyen-election/doyen/election"
)

// kind describes one kind of message.
type kind struct {
	number uint64 // on the wire: never changed, and never given to another kind
	name   string // in metrics: never changed
	typ    reflect.Type
	decode func(body []byte) (election.Message, error)
	check  func(election.Message) error
}

// kinds has every kind of message, with the check of its values. It does not change after the program's
// start. Rounds, send IDs, lineages and stamps have no structure, so all of their values are accepted.
var kinds = []kind{
	of(1, func(m election.BullyElection) error { return cmp.Or(electionName(m.Election), rank("rank", m.Rank)) }),
	of(2, func(m election.BullyAnswer) error { return electionName(m.Election) }),
	of(3, func(m election.BullyDecline) error { return electionName(m.Election) }),
	of(4, func(m election.BullyCoordinator) error {
		return cmp.Or(electionName(m.Election), term("term", m.Term), holder("leader", m.Leader))
	}),
	of(5, func(m election.RingElection) error {
		return cmp.Or(electionName(m.Election), peer("round's origin", m.Round.Origin), rank("best", m.Best))
	}),
	of(6, func(m election.RingAck) error {
		return cmp.Or(electionName(m.Election), peer("round's origin", m.Round.Origin), peer("best", m.Best))
	}),
	of(7, func(m election.RingElected) error {
		return cmp.Or(electionName(m.Election), term("term", m.Term), holder("leader", m.Leader))
	}),
	of(8, func(m election.VoteRequest) error {
		return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
			lease(m.Lease), maybe("rank", m.Rank, rank), roster(&m.Roster))
	}),
	of(9, func(m election.VoteGrant) error {
		return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
			maybeTerm("version's driver", m.Version.Driver), maybeWord(m.Word))
	}),
	of(10, func(m election.VoteRefusal) error {
		if m.Reason == 0 {
			return errors.New("no reason")
		}
		return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
			maybeTerm("granted term", m.Granted), maybe("granted to", m.GrantedTo, holder),
			maybeDuration("remaining", m.Remaining), roster(m.Roster))
	}),
	of(11, func(m election.Release) error {
		return cmp.Or(electionName(m.Election), term("term", m.Term), holder("holder", m.Holder),
			maybePeer("target", m.Target), maybeDuration("stand-down", m.StandDown))
	}),
	of(12, func(m election.Heartbeat) error {
		return cmp.Or(maybeTerm("version's driver", m.Version.Driver),
			each("claims", m.Claims, election.MaxElections, func(c election.Claim) election.Name { return c.Election }, claim),
			progress(m.Progress))
	}),
	of(13, func(m election.HeartbeatAck) error {
		return cmp.Or(maybeTerm("version's driver", m.Version.Driver),
			each("nacks", m.Nacks, election.MaxElections, func(n election.Nack) election.Name { return n.Election }, nack),
			roster(m.Roster), progress(m.Progress))
	}),
	of(14, func(m election.Inquiry) error { return maybeElection(m.Election) }),
	of(15, func(m election.Report) error {
		return cmp.Or(roster(m.Roster),
			each("records", m.Records, election.MaxElections, func(s election.Record) election.Name { return s.Election }, record),
			maybeElection(m.Election))
	}),
	of(16, func(m election.GenesisPropose) error { return genesis(&m.Genesis) }),
	of(17, func(m election.GenesisAccept) error { return cluster(m.Cluster) }),
	of(18, func(m election.GenesisRefuse) error {
		if m.Reason == 0 {
			return errors.New("no reason")
		}
		return cmp.Or(cluster(m.Cluster), text("detail", m.Detail, maxDetail))
	}),
	of(20, func(m election.RosterPropose) error {
		return cmp.Or(term("driver", m.Driver), holder("holder", m.Holder), roster(&m.Roster))
	}),
	of(21, func(m election.RosterAccept) error {
		return cmp.Or(term("driver", m.Driver), maybeTerm("version's driver", m.Version.Driver),
			maybeTerm("highest term", m.Highest), maybeDuration("promise", m.Promise))
	}),
	of(22, func(m election.RosterRefuse) error {
		return cmp.Or(term("driver", m.Driver), maybeTerm("version's driver", m.Version.Driver),
			maybeTerm("granted term", m.Granted), roster(m.Roster))
	}),
	of(23, func(m election.Candidacies) error {
		return each("candidacies", m.Candidacies, election.MaxElections, func(c election.Candidacy) election.Name { return c.Election }, candidacy)
	}),
	of(24, func(election.CandidaciesAck) error { return nil }),
	of(25, func(m election.RosterCancel) error { return maybeTerm("version's driver", m.Version.Driver) }),
	// 26 was the Obituary of 0.3.0. An agent of 0.3.0 that receives one passes it on.
	of(27, func(m election.Call) error {
		switch {
		case m.Method != "GET" && m.Method != "POST":
			return fmt.Errorf("method %.16q", m.Method)
		case len(m.Path) > election.MaxCallText || len(m.Caller) > election.MaxCallText || len(m.Body) > election.MaxCallBody:
			return errors.New("path, caller or body is too long")
		}
		return nil
	}),
	of(28, func(m election.CallAnswer) error {
		if m.Status < 100 || m.Status > 599 || len(m.Body) > election.MaxCallBody {
			return fmt.Errorf("status %d with %d bytes", m.Status, len(m.Body))
		}
		return nil
	}),
	of(29, func(m election.WordWrite) error {
		return cmp.Or(electionName(m.Election), holder("holder", m.Holder), maybeTerm("version's driver", m.Version.Driver), word(m.Word))
	}),
	of(30, func(m election.WordAck) error {
		return cmp.Or(electionName(m.Election), term("rank", m.Rank.Term), maybeTerm("version's driver", m.Version.Driver))
	}),
	of(31, func(m election.WordsWanted) error {
		return cmp.Or(maybeTerm("version's driver", m.Version.Driver), maybeElection(m.After))
	}),
	of(32, func(m election.Words) error {
		return cmp.Or(maybeTerm("version's driver", m.Version.Driver), maybeElection(m.After), namedWords(m.Words),
			each("words", m.Words, election.MaxElections, func(w election.NamedWord) election.Name { return w.Election }, func(election.NamedWord) error { return nil }))
	}),
	of(33, func(m election.Listen) error {
		return each("elections", m.Elections, election.MaxElections, func(e election.Name) election.Name { return e }, electionName)
	}),
	of(34, func(m election.News) error {
		return each("leaders", m.Leaders, election.MaxElections, func(h election.Heard) election.Name { return h.Election }, heard)
	}),
}

// byNumber and byType are indexes of kinds. They do not change either.
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
			err := messages.Unmarshal(body, &m)
			return m, err
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
