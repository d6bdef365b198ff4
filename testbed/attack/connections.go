package attack

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/observe"
)

// between is how long idle waits before it replaces a connection.
const between = 100 * time.Millisecond

// idle keeps a number of connections open to each target's gossip, peer or http port or its
// socket. On each connection it sends the option send. If the other side closes one, idle
// opens another. With several sources, the attack must run on the target's own host, because the
// sources are addresses of the loopback interface.
func idle(f *flag.FlagSet) runner {
	n, sources, user := f.Int("connections", 512, ""), f.Int("sources", 1, ""), f.Int("user", nobody, "")
	port, send := f.String("port", "gossip", ""), f.String("send", "", "")
	return func(ctx context.Context, o Order) (string, error) {
		return o.idle(ctx, *n, *sources, *user, *port, strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(*send))
	}
}

const nobody = -1 // not another user

func (o Order) idle(ctx context.Context, n, sources, user int, port, send string) (string, error) {
	if sources > 1 && !o.Here {
		return "", fmt.Errorf("sources=%d: attack from the host that is attacked", sources)
	}
	if user != nobody {
		if err := become(user, o.Targets); err != nil {
			return "", err
		}
	}
	var opened, held, most atomic.Int64
	var all sync.WaitGroup
	for _, t := range o.Targets {
		network, address, err := t.port(port)
		if err != nil {
			return "", err
		}
		if network == "unix" && user != nobody {
			address = filepath.Base(address) // become made the socket's directory the working directory
		}
		for i := range n {
			var from net.Addr
			if sources > 1 {
				from = net.TCPAddrFromAddrPort(netip.AddrPortFrom(loopbackSource(i%sources), 0))
			}
			all.Go(func() {
				_ = observe.Sleep(ctx, between*time.Duration(i)/time.Duration(n)) // so that not all act at the same moment
				for ctx.Err() == nil {
					keepOpen(ctx, from, network, address, send, func(d int64) {
						most.Store(max(most.Load(), held.Add(d)))
						opened.Add(max(d, 0))
					})
					_ = observe.Sleep(ctx, between)
				}
			})
		}
	}
	all.Wait()
	return fmt.Sprintf("opened %d connections, at most %d at once", opened.Load(), most.Load()), nil
}

// become gives this process to another user for good. It also opens the target's socket to all
// users, as an operator may do. It makes the socket's directory the working directory, since the
// user may not enter the directories above.
func become(uid int, targets []Target) error {
	if len(targets) != 1 {
		return fmt.Errorf("user=%d: attack one host at a time", uid)
	}
	dir, name := filepath.Split(targets[0].Socket)
	if err := errors.Join(os.Chdir(dir), os.Chmod(".", 0o755), os.Chmod(name, 0o666)); err != nil {
		return err
	}
	return wrap.Error(errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid)), "user=%d", uid)
}

func (t Target) port(name string) (network, address string, err error) {
	switch name {
	case "gossip":
		return "tcp", t.Gossip.String(), nil
	case "peer":
		return "tcp", t.Peer.String(), nil
	case "http":
		return "tcp", t.HTTP, nil
	case "socket":
		return "unix", t.Socket, nil
	}
	return "", "", fmt.Errorf("port=%s: want gossip, peer, http or socket", name)
}

// keepOpen holds one connection until the other side closes it.
func keepOpen(ctx context.Context, from net.Addr, network, address, send string, count func(int64)) {
	d := net.Dialer{Timeout: time.Second, LocalAddr: from}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	count(1)
	defer count(-1)
	if _, err := c.Write([]byte(send)); err != nil {
		return
	}
	buffer := make([]byte, 4096)
	for {
		if _, err := c.Read(buffer); err != nil {
			return
		}
	}
}

// loopbackSource is the i-th address of the loopback interface that connections come from.
func loopbackSource(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(i / 250), byte(1 + i%250)})
}

// encrypted is the byte that begins an encrypted message of a stream, before its length.
const encrypted = 10

// chunk is how many bytes a stream sends at once.
const chunk = 64 << 10

// streams keeps a number of streams open to each target. Each sends the label, announces a
// long encrypted message, and then sends a number of meaningless bytes. rate is how many MiB
// all streams together send each second; 0 is no limit.
func streams(f *flag.FlagSet) runner {
	n, announce, send, rate := f.Int("streams", 120, ""), f.Int("announce", 20_000_000, ""), f.Int("send", 4<<20, ""), f.Float64("rate", 0, "")
	return func(ctx context.Context, o Order) (string, error) { return o.streams(ctx, *n, *announce, *send, *rate) }
}

func (o Order) streams(ctx context.Context, n, announce, send int, rate float64) (string, error) {
	var opened, sent atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	workers := n * len(o.Targets)
	for _, t := range o.Targets {
		for range n {
			all.Go(func() {
				p := newPace(rate * (1 << 20) / chunk / float64(workers))
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
func announceAndSend(ctx context.Context, t Target, announce, send int, pace *rate.Limiter) int64 {
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
	for sent < int64(send) {
		n, err := c.Write(junk[:min(chunk, send-int(sent))])
		if sent += int64(n); err != nil || observe.Sleep(ctx, pace.Reserve().Delay()) != nil { // what the target does not take costs nothing
			break
		}
	}
	return sent
}
