package codec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// The bounds of single values.
const (
	maxPeerID   = 128 // bytes; an Ed25519 peer ID has 52
	maxCluster  = 128 // bytes
	maxDetail   = election.MaxDetail
	maxDuration = 24 * time.Hour
	maxPriority = math.MaxInt32
	maxTerm     = election.MaxTerm
)

func electionName(n election.Name) error {
	if n == election.RosterElection || election.ValidName(string(n)) {
		return nil
	}
	return fmt.Errorf("election name %.64q is not valid", n)
}

// term refuses 0, which means that there is no term.
func term(field string, t election.Term) error {
	if t == 0 {
		return fmt.Errorf("%s is 0", field)
	}
	return maybeTerm(field, t)
}

func maybeTerm(field string, t election.Term) error {
	if t > maxTerm {
		return fmt.Errorf("%s %d is above %d", field, t, maxTerm)
	}
	return nil
}

func peer(field string, p election.PeerID) error {
	if p == "" {
		return fmt.Errorf("%s is empty", field)
	}
	return maybePeer(field, p)
}

func maybePeer(field string, p election.PeerID) error {
	if len(p) > maxPeerID {
		return fmt.Errorf("%s has %d bytes, over the limit of %d", field, len(p), maxPeerID)
	}
	for i := range len(p) {
		if p[i] <= ' ' || p[i] > '~' {
			return fmt.Errorf("%s %.64q is not a peer ID", field, p)
		}
	}
	return nil
}

func holder(field string, h election.Holder) error { return peer(field, h.Peer) }

// maybe accepts the zero value, which means that nothing is given.
func maybe[T comparable](field string, v T, check func(field string, v T) error) error {
	if v == *new(T) {
		return nil
	}
	return check(field, v)
}

func rank(field string, r election.Rank) error {
	return wrap.Error(cmp.Or(priority("priority", r.Priority), peer("peer", r.Peer)), "%s", field)
}

func priority(field string, p int) error {
	if p < 0 || p > maxPriority {
		return fmt.Errorf("%s %d is not between 0 and %d", field, p, maxPriority)
	}
	return nil
}

func duration(field string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s %s is not above 0", field, d)
	}
	return maybeDuration(field, d)
}

func lease(d time.Duration) error {
	if d > election.MaxLease {
		return fmt.Errorf("lease %s is above %s", d, election.MaxLease)
	}
	return duration("lease", d)
}

func maybeDuration(field string, d time.Duration) error {
	if d < 0 || d > maxDuration {
		return fmt.Errorf("%s %s is not between 0 and %s", field, d, maxDuration)
	}
	return nil
}

func text(field, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("%s has %d bytes, over the limit of %d", field, len(s), limit)
	}
	return nil
}

func cluster(id string) error {
	if id == "" {
		return errors.New("cluster ID is empty")
	}
	return text("cluster ID", id, maxCluster)
}

// each checks every element, and that the keys strictly rise. So no key comes twice.
func each[T any, K cmp.Ordered](field string, list []T, limit int, key func(T) K, check func(T) error) error {
	if len(list) > limit {
		return fmt.Errorf("%d %s are over the limit of %d", len(list), field, limit)
	}
	for i, v := range list {
		if err := check(v); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		if i > 0 && key(list[i-1]) >= key(v) {
			return fmt.Errorf("%s are not in rising order", field)
		}
	}
	return nil
}

func roster(r *election.Roster) error {
	switch {
	case r == nil:
		return nil
	case r.Version == election.Version{}:
		return errors.New("roster: version 0.0 is not valid")
	case len(r.Voters) == 0:
		return errors.New("roster: no voters")
	case r.Committed && !r.Joint():
		return errors.New("roster: it is marked as committed, but only a joint roster can be")
	}
	return wrap.Error(cmp.Or(cluster(r.Cluster), maybeTerm("driver", r.Version.Driver), maybeTerm("floor", r.Floor),
		voters("voters", r.Voters), voters("next voters", r.Next), rights(r.Rights), settings(r.Settings)), "roster")
}

func rights(list []election.Right) error {
	if n := election.RightsSize(list); n > election.MaxRightsSize {
		return fmt.Errorf("rights take %d bytes, over the limit of %d", n, election.MaxRightsSize)
	}
	return each("rights", list, election.MaxRights, func(r election.Right) election.Name { return r.Election }, right)
}

func right(r election.Right) error {
	switch {
	case r.Election == election.RosterElection:
		return errors.New("the roster election has no rights")
	case len(r.Agents) == 0 && r.MaxPriority == 0:
		return errors.New("it limits nothing")
	}
	return cmp.Or(electionName(r.Election), priority("max priority", r.MaxPriority),
		each("agents", r.Agents, election.MaxRightsSize, func(p election.PeerID) election.PeerID { return p },
			func(p election.PeerID) error { return peer("agent", p) }))
}

func settings(s election.Settings) error {
	if s.Algorithm != "" && s.Algorithm != "bully" && s.Algorithm != "ring" {
		return fmt.Errorf("algorithm %.64q is not known", s.Algorithm)
	}
	if s.Lease == 0 {
		return nil
	}
	return lease(s.Lease)
}

// voters checks one half of a roster. A name may appear only once in a half. Two peers in different halves may
// have the same name: then one voter replaces the other.
func voters(field string, list []election.Voter) error {
	names := make(map[string]bool, min(len(list), election.MaxVoters))
	return each(field, list, election.MaxVoters,
		func(v election.Voter) election.PeerID { return v.Peer },
		func(v election.Voter) error {
			if !election.ValidName(v.Name) {
				return fmt.Errorf("name %.64q is not valid", v.Name)
			}
			if names[v.Name] {
				return fmt.Errorf("name %q is used twice", v.Name)
			}
			names[v.Name] = true
			return peer("peer", v.Peer)
		})
}

func genesis(g *election.Genesis) error {
	if g == nil {
		return nil
	}
	return wrap.Error(cmp.Or(peer("proposer", g.Proposer), roster(&g.Roster)), "genesis")
}
