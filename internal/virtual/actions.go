package virtual

import (
	"iter"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Publish is an action: after it, readers may see the elector's status of this step.
type Publish struct{}

// Actions lists what an output asks for, in the order in which an agent does it: the *election.LifeRecord if it
// has one, Publish, each election.Withdrawal, the *election.Persist if it has one, each election.Envelope, each
// election.PeerID to redial, the election.Instant of the next wake-up, each election.Announcement and each
// election.Reply. A process that crashes meanwhile has done only the first of them.
func Actions(out *election.Output) iter.Seq[any] {
	return func(yield func(any) bool) {
		_ = (out.Record == nil || yield(out.Record)) && yield(Publish{}) &&
			each(out.Withdraw, yield) && (out.Persist == nil || yield(out.Persist)) &&
			each(out.Send, yield) && each(out.Redial, yield) && yield(out.WakeAt) &&
			each(out.Announce, yield) && each(out.Replies, yield)
	}
}

func each[T any](list []T, yield func(any) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !yield(x) })
}
