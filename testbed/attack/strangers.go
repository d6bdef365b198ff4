package attack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

// stranger is how the name of a stranger begins.
const stranger = "stranger-"

// strangers makes one agent after another join, each with the cluster key that is in use at its start.
// Each stays for a while and answers what it is asked. The attack fails if any of them is sent a key.
func strangers(f *flag.FlagSet) runner {
	every, stay := f.Duration("every", 100*time.Millisecond, ""), f.Duration("stay", 3*time.Second, "")
	return func(ctx context.Context, o Order) (string, error) { return o.strangers(ctx, *every, *stay) }
}

func (o Order) strangers(ctx context.Context, every, stay time.Duration) (string, error) {
	var joined, met, keys atomic.Int64
	var here sync.WaitGroup
	for ctx.Err() == nil {
		here.Go(func() {
			l, err := joinAsObserver(fmt.Sprintf("%s%d", stranger, joined.Add(1)), o.Targets)
			if err != nil {
				return
			}
			defer l.close()
			staying, cancel := context.WithTimeout(ctx, stay)
			defer cancel()
			l.remain(staying, every, func() {}) // it sends only what an agent has to
			keys.Add(int64(l.keys))
			if len(l.stamps) > 0 {
				met.Add(1)
			}
		})
		_ = observe.Sleep(ctx, every)
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
