package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	watcherCount  = 1000
	watcherRounds = 10 // hand-overs, each of two changes
)

// watchers measures how soon the last of many watchers has read a change.
func (b *bench) watchers(ctx context.Context) error {
	return b.watched(ctx, watcherCount, watcherRounds)
}

// watched hands leadership over again and again, while many watchers watch one agent.
func (b *bench) watched(ctx context.Context, watchers, rounds int) (err error) {
	return b.quiet(ctx, func(r *rig, leader *hosts.Host) error {
		watched := r.Cluster.Hosts()[0]
		_, before, unknown := readMemory(watched.PID())
		crowd, err := gather(ctx, watched, watchers)
		if err != nil {
			return err
		}
		defer crowd.close()
		if _, after, err := readMemory(watched.PID()); errors.Join(unknown, err) == nil {
			b.add("Watch", value{Value: (after - before) * 1024 / float64(watchers), Unit: "KiB/watcher"})
		}
		return b.repeat(fmt.Sprintf("hand-overs before %d watchers", watchers), rounds, func() error {
			to := r.other(leader)
			if _, err := handOver(ctx, leader, string(election.Default), to.Name()); err != nil {
				return err
			}
			leader = to
			lasted, err := crowd.reached(ctx, to.Name())
			b.addAll("Watch", "ms/change", lasted)
			return err
		})
	})
}

type crowd struct {
	conns   []*asking
	lines   chan arrival
	over    chan struct{}
	begun   uint64            // the index of the newest change before all were watching
	changes map[uint64]*reach // changes that some watchers have not read yet
	decoded map[string]api.Change
}

type reach struct {
	read int
	took time.Duration
}

// arrival is a line that a watcher has read. It is decoded later, and only once for all
// watchers: a thousand decodings would be measured too.
type arrival struct {
	line string
	at   election.Instant
	err  error
}

// gather connects n watchers, and returns when each has its first line.
func gather(ctx context.Context, h *hosts.Host, n int) (*crowd, error) {
	c := &crowd{lines: make(chan arrival, n), over: make(chan struct{}), changes: map[uint64]*reach{}, decoded: map[string]api.Change{}}
	if err := c.gather(ctx, h, n); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *crowd) gather(ctx context.Context, h *hosts.Host, n int) error {
	for range n {
		conn, err := newAsking(h)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	for _, conn := range c.conns {
		go c.read(conn)
	}
	for watching := 0; watching < n; {
		change, _, err := c.next(ctx)
		if err != nil {
			return err
		}
		if change.Type == api.ChangeSnapshot { // other changes may come while some still connect
			watching++
		}
		c.begun = max(c.begun, change.Index)
	}
	return nil
}

// read reports every line that arrives, until the connection ends.
func (c *crowd) read(a *asking) {
	err := func() error {
		response, err := a.get("/v1/elections/" + string(election.Default) + "/watch")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			c.tell(arrival{at: boottime.Now(), line: lines.Text()})
		}
		return errors.Join(lines.Err(), io.EOF)
	}()
	c.tell(arrival{err: fmt.Errorf("watch: %w", err)})
}

func (c *crowd) tell(a arrival) {
	select {
	case c.lines <- a:
	case <-c.over:
	}
}

func (c *crowd) next(ctx context.Context) (api.Change, election.Instant, error) {
	a, err := c.await(ctx)
	if err != nil {
		return api.Change{}, 0, err
	}
	change, known := c.decoded[a.line]
	if !known {
		if err := json.Unmarshal([]byte(a.line), &change); err != nil {
			return change, 0, fmt.Errorf("decode the watch: %w", err)
		}
		if change.Type != api.ChangeSnapshot { // each watcher has its own snapshot
			c.decoded[a.line] = change
		}
	}
	return change, a.at, nil
}

func (c *crowd) await(ctx context.Context) (arrival, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case a := <-c.lines:
		return a, a.err
	case <-limit.C:
		return arrival{}, fmt.Errorf("watch: no line within %s", patience)
	case <-ctx.Done():
		return arrival{}, context.Cause(ctx)
	}
}

// reached waits until every watcher has read that the agent leads. It returns how long each
// change took until all had read it, in milliseconds.
func (c *crowd) reached(ctx context.Context, leader string) ([]float64, error) {
	for told := false; !told; {
		change, at, err := c.next(ctx)
		if err != nil {
			return nil, err
		}
		if change.Type == api.ChangeLagged {
			return nil, errors.New("watch: a change was lost")
		}
		if change.Index <= c.begun {
			continue
		}
		seen := c.changes[change.Index]
		if seen == nil {
			seen = &reach{}
			c.changes[change.Index] = seen
		}
		seen.read++
		seen.took = max(seen.took, at.Sub(election.Instant(change.BoottimeNS)))
		told = seen.read == len(c.conns) && change.Leader != nil && change.Leader.Name == leader
	}
	var took []float64
	for index, seen := range c.changes {
		if seen.read == len(c.conns) {
			took = append(took, millis(seen.took))
			delete(c.changes, index)
		}
	}
	return took, nil
}

func (c *crowd) close() {
	close(c.over)
	var closing sync.WaitGroup
	for _, conn := range c.conns {
		closing.Go(func() { conn.conn.Close() })
	}
	closing.Wait()
}
