package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/attack"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	pageElections, pageReaders, pageAddresses = 200, 512, 16

	pagesFor   = 30 * time.Second
	checkEvery = 20 * time.Millisecond // how often a load balancer asks

	unreadAnswers, unreadChanges = 640, 1024

	unreadFor = 12 * time.Second
)

// readPages measures whether leads are lost, and how soon a load balancer is answered, while many read the
// status pages, each up to ten times a second.
func (b *bench) readPages(ctx context.Context, elections, readers int, d time.Duration) error {
	config := b.config()
	config.Adjust = func(_ int, a *settings.Config) { a.HTTP = a.Bind }
	return b.amongElections(ctx, config, "Pages", elections, d, func(r *rig) error {
		for _, h := range r.Cluster.Hosts() {
			b.progress(fmt.Sprintf("%d readers of the page of %s", readers, h.Name()), 0, 0)
			arguments, err := actor.Attack(attack.Order{Attack: "idle", Targets: []attack.Target{{HTTP: h.Config().HTTP}}, Here: true, For: d / time.Duration(b.on.Agents),
				Options: map[string]string{"port": "http", "connections": strconv.Itoa(readers), "sources": strconv.Itoa(pageAddresses), "send": `GET / HTTP/1.0\r\n\r\n`}})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(ctx)
			crowd := exec.CommandContext(ctx, actor.Path(), arguments...)
			go func() {
				defer cancel()
				_ = crowd.Run() // only its effect on the agents counts
			}()
			for observe.Sleep(ctx, checkEvery) == nil {
				began := time.Now()
				for ctx.Err() == nil && leads(ctx, h) != nil {
				}
				b.add("Pages", took(time.Since(began), perRead))
			}
		}
		return nil
	})
}

// leads asks an agent as a load balancer does.
func leads(ctx context.Context, h *hosts.Host) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", h.Config().HTTP)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = (&asking{conn, bufio.NewReader(conn)}).ask("/leader")
	return err
}

// leaveUnread measures the memory of an agent that is asked for many long answers, which nobody reads.
func (b *bench) leaveUnread(ctx context.Context, answers int, d time.Duration) error {
	change := `{"time":"2026-11-25T12:00:00Z","type":"no_leader","evidence":"` + strings.Repeat("x", 200) + "\"}\n"
	config := b.config()
	config.Adjust = func(_ int, a *settings.Config) {
		_ = os.MkdirAll(a.DataDir, 0o700)
		_ = os.WriteFile(filepath.Join(a.DataDir, "history"), []byte(strings.Repeat(change, unreadChanges)), 0o600)
	}
	return b.quiet(ctx, config, func(_ *rig, leader *hosts.Host) error {
		if err := observe.Sleep(ctx, d/2); err != nil { // until then the agent has given back the memory of its start
			return err
		}
		all := &crowd{}
		defer all.close()
		for n, end := 0, time.Now().Add(d); time.Now().Before(end); n++ {
			a, err := newAsking(leader)
			if err != nil {
				return err
			}
			if n < answers {
				all.conns = append(all.conns, a)
			} else { // replace the oldest connection, which the agent may have closed
				all.conns[n%answers].conn.Close()
				all.conns[n%answers] = a
			}
			_, _ = fmt.Fprintf(a.conn, "GET /v1/history?limit=%d HTTP/1.1\r\nHost: d\r\n\r\n", unreadChanges)
			used, _, err := readMemory(leader.PID())
			if err := errors.Join(err, observe.Sleep(ctx, time.Millisecond)); err != nil {
				return err
			}
			b.add("Unread", value{Value: used, Unit: rss})
		}
		return nil
	})
}
