package pages

import (
	"context"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// order is what Run is to do: close the page in close, or if that is nil, make one.
type order struct {
	election election.Name
	close    *leasepage.Writer
}

type outcome struct {
	election election.Name
	page     *leasepage.Writer
	err      error
}

// Run makes and removes files until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if k == nil || k.lock == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.work:
		}
		for ctx.Err() == nil {
			o, ok := k.next()
			if !ok {
				break
			}
			k.carryOut(o)
		}
	}
}

func (k *Keeper) next() (order, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.orders) == 0 {
		return order{}, false
	}
	o := k.orders[0]
	k.orders = k.orders[1:]
	return o, true
}

func (k *Keeper) carryOut(o order) {
	if o.close != nil {
		_ = o.close.Close() // the page holds no lease; the next start removes what stays
		return
	}
	page, err := leasepage.Create(k.dir, string(o.election), uint64(k.boot))
	k.mu.Lock()
	k.done = append(k.done, outcome{o.election, page, err})
	k.mu.Unlock()
	signal(k.ready)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
