package attack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/membership"
)

// strangers makes one agent after another join with the key that is in use then. Each stays for a
// while and answers what it is asked. The attack fails if any of them is sent a key.
func strangers(ctx context.Context, o Order) (string, error) {
	var every, stay time.Duration
	if err := o.spans(map[string]*time.Duration{"every": &every, "stay": &stay}); err != nil {
		return "", err
	}
	var joined, met, keys atomic.Int64
	var here sync.WaitGroup
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		here.Go(func() {
			l, err := joinAsObserver(fmt.Sprintf("stranger-%d", joined.Add(1)), o.Targets)
			if err != nil {
				return
			}
			defer l.close()
			l.remain(ctx, stay)
			keys.Add(int64(l.keys))
			if len(l.stamps) > 0 {
				met.Add(1)
			}
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	here.Wait()
	switch {
	case keys.Load() > 0:
		return "", fmt.Errorf("strangers were sent a key %d times", keys.Load())
	case met.Load() == 0:
		return "", errors.New("none was connected to an agent")
	}
	return fmt.Sprintf("%d strangers came, %d were connected, none was sent a key", joined.Load(), met.Load()), nil
}

// remain takes part as an agent does, and sends nothing of its own.
func (l *liar) remain(ctx context.Context, stay time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, stay)
	defer cancel()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case v := <-l.gossip.Views():
			v.Members = slices.DeleteFunc(v.Members, func(m membership.Member) bool { return strings.HasPrefix(m.Name, "stranger-") })
			l.viewed(v)
		case <-l.network.Ready():
			l.hear()
		}
	}
}
