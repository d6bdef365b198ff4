package virtual

import (
	"iter"

	"github.com/doyen-election/doyen/election"
)

// Publish is the moment from which readers may see the elector's status after this step.
type Publish struct{}

// Actions lists what an output asks for, in the order in which an agent does it: the
// *election.LifeRecord if there is one, Publish, each election.Withdrawal, the
// *election.Persist if there is one, each election.Envelope, each election.PeerID to redial,
// the election.Instant at which it wants to be woken, each election.Announcement and each
// election.Reply. A process that crashes in the middle has done only the first ones.
func Actions(out *election.Output) iter.Seq[any] {
	return func(yield func(any) bool) {
		if out.Record != nil && !yield(out.Record) {
			return
		}
		if !yield(Publish{}) {
			return
		}
		for _, w := range out.Withdraw {
			if !yield(w) {
				return
			}
		}
		if out.Persist != nil && !yield(out.Persist) {
			return
		}
		for _, e := range out.Send {
			if !yield(e) {
				return
			}
		}
		for _, p := range out.Redial {
			if !yield(p) {
				return
			}
		}
		if !yield(out.WakeAt) {
			return
		}
		for _, a := range out.Announce {
			if !yield(a) {
				return
			}
		}
		for _, r := range out.Replies {
			if !yield(r) {
				return
			}
		}
	}
}
