package elector

import (
	"iter"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// candidates finds the candidates of an election without a walk of all members.
type candidates struct {
	lists table[election.PeerID, []election.Candidacy] // of each member that has any, sorted by election
	ids   map[election.Name][]election.PeerID          // of the candidates of each election that has any, sorted
}

// set replaces the candidacies of a member; nil: it has none. They are sorted by election.
func (cs *candidates) set(id election.PeerID, list []election.Candidacy) {
	former := cs.lists.get(id)
	ended, added := missing(former, list), missing(list, former)
	switch {
	case len(ended)+len(added) == 0:
		return
	case len(list) == 0:
		cs.lists.remove(id)
	default:
		cs.lists.put(id, list)
	}
	for _, c := range ended {
		if ids := slices.DeleteFunc(cs.ids[c.Election], func(p election.PeerID) bool { return p == id }); len(ids) > 0 {
			cs.ids[c.Election] = ids
		} else {
			delete(cs.ids, c.Election)
		}
	}
	if cs.ids == nil {
		cs.ids = map[election.Name][]election.PeerID{}
	}
	for _, c := range added {
		ids := cs.ids[c.Election]
		i, _ := slices.BinarySearch(ids, id)
		cs.ids[c.Election] = slices.Insert(ids, i, id)
	}
}

// missing returns the candidacies that are not in the other list. That list must be sorted.
func missing(candidacies, other []election.Candidacy) (without []election.Candidacy) {
	for _, c := range candidacies {
		if i, has := election.FindCandidacy(other, c.Election); !has || other[i] != c {
			without = append(without, c)
		}
	}
	return without
}

// enlist takes a member's candidacies from what it has sent itself since it connected, or else from gossip.
func (cs *candidates) enlist(m election.Member, p *peer) {
	if p != nil && p.listed && p.lineage == m.Lineage {
		cs.set(m.Peer, p.candidacies)
	} else {
		cs.set(m.Peer, m.Candidacies)
	}
}

func (cs *candidates) dropAllBut(v election.View) {
	for _, id := range cs.lists.keys {
		if _, is := v.Find(id); !is {
			cs.set(id, nil)
		}
	}
}

func (cs *candidates) rank(m election.Member, name election.Name) (election.Rank, bool) {
	return m.RankIn(name, cs.lists.get(m.Peer))
}

// of walks the members of a view that are candidates in an election, sorted by peer ID.
func (cs *candidates) of(name election.Name, v election.View) iter.Seq[election.Member] {
	return func(yield func(election.Member) bool) {
		for _, id := range cs.ids[name] {
			if m, _ := v.Find(id); !yield(m) {
				return
			}
		}
	}
}
