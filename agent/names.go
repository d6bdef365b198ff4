package agent

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// namesOf returns the names of all voters and members. The name of a present member replaces
// the one in the roster, or the one that the agent had when it left.
func namesOf(self election.PeerID, name string, v *membership.View, r *election.Roster) map[election.PeerID]string {
	names := map[election.PeerID]string{}
	for _, voter := range r.All() {
		names[voter.Peer] = voter.Name
	}
	for _, members := range [][]membership.Member{v.Departed, v.Members} {
		for _, m := range members {
			names[m.Peer] = m.Name
		}
	}
	names[self] = name
	return names
}

func (l *loop) nameOf(p election.PeerID) string {
	if name, ok := l.names[p]; ok {
		return name
	}
	return string(p)
}
