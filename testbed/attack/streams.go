package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

// encrypted is the byte that begins an encrypted message of a stream, before its length.
const encrypted = 10

// chunk is how many bytes a stream sends at once.
const chunk = 64 << 10

// streams keeps a number of streams open to each target. Each sends the label, announces a
// long encrypted message, and then sends a number of meaningless bytes. rate is how many MiB
// all streams together send each second; 0 is no limit.
func streams(ctx context.Context, o Order) (string, error) {
	var n, announce, send, rate int
	if err := o.numbers(map[string]*int{"streams": &n, "announce": &announce, "send": &send, "rate": &rate}); err != nil {
		return "", err
	}
	var opened, sent atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	workers := n * len(o.Targets)
	for _, t := range o.Targets {
		for range n {
			all.Go(func() {
				p := newPace(float64(rate) * (1 << 20) / chunk / float64(workers))
				for ctx.Err() == nil {
					sent.Add(announceAndSend(ctx, t, announce, send, p))
					opened.Add(1)
				}
			})
		}
	}
	all.Wait()
	mib := float64(sent.Load()) / (1 << 20)
	return fmt.Sprintf("sent %.0f MiB on %d streams, %.0f MiB/s", mib, opened.Load(), mib/time.Since(began).Seconds()), nil
}

// announceAndSend opens one stream. It returns how many meaningless bytes the target took.
func announceAndSend(ctx context.Context, t Target, announce, send int, p *pace) int64 {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", t.Gossip.String())
	if err != nil {
		_ = observe.Sleep(ctx, 10*time.Millisecond)
		return 0
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	head := binary.BigEndian.AppendUint32(append(t.label(), encrypted), uint32(announce))
	junk := make([]byte, chunk)
	if _, err := c.Write(append(head, 1)); err != nil { // 1 is the version of the encryption
		return 0
	}
	var sent int64
	for sent < int64(send) && p.wait(ctx) {
		n, err := c.Write(junk[:min(chunk, send-int(sent))])
		sent += int64(n)
		if err != nil {
			if n == 0 {
				p.giveBack()
			}
			break
		}
	}
	return sent
}
