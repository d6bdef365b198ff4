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

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	watcherCount  = 1000
	watcherRounds = 10 // hand-overs, each of two changes
)

// watched hands leadership over again and again, and measures how soon the last of many watchers of one agent has read each change.
func (b *bench) watched(ctx context.Context, watchers, rounds int) (err error) {
	return b.quiet(ctx, b.config(), func(r *rig, leader *hosts.Host) error {
		watched := r.Cluster.Hosts()[0]
		_, before, unknown := readMemory(watched.PID())
		c := &crowd{size: watchers, lines: map[string]*reach{}}
		defer c.close()
		if err := c.gather(ctx, watched); err != nil {
			return err
		}
		if _, after, err := readMemory(watched.PID()); errors.Join(unknown, err) == nil {
			b.add("Watch", value{Value: (after - before) * 1024 / float64(watchers), Unit: "KiB/watcher"})
		}
		return b.repeat(fmt.Sprintf("hand-overs before %d watchers", watchers), rounds, func() error {
			to := r.other(leader)
			if _, err := handOver(ctx, leader, string(election.Default), to.Name()); err != nil {
				return err
			}
			leader = to
			return c.until(ctx, func() (bool, error) {
				took, led, err := c.reached(to.Name())
				b.addAll("Watch", "ms/change", took)
				return led, err
			})
		})
	})
}

// crowd is many watchers of one agent. The lines that they read are decoded later, and each line
// only once, so that a thousand decodings are not measured too.
type crowd struct {
	size  int
	conns []*asking

	mu       sync.Mutex
	watching int               // how many have read their first line, the snapshot
	lines    map[string]*reach // all other lines
	failed   error
}

// reach is how many watchers have read a line, and when the last of them did.
type reach struct {
	read int
	last election.Instant
}

// gather connects the watchers, and returns when each has its first line.
func (c *crowd) gather(ctx context.Context, h *hosts.Host) error {
	for range c.size {
		conn, err := newAsking(h)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
		go c.read(conn)
	}
	return c.until(ctx, func() (bool, error) { return c.watching == c.size, nil })
}

// read counts every line that arrives, until the connection ends.
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
		for first := true; lines.Scan(); first = false {
			c.count(lines.Text(), first, boottime.Now())
		}
		return errors.Join(lines.Err(), io.EOF)
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = fmt.Errorf("watch: %w", err)
}

func (c *crowd) count(line string, first bool, at election.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first {
		c.watching++
		return
	}
	seen := c.lines[line]
	if seen == nil {
		seen = &reach{}
		c.lines[line] = seen
	}
	seen.read, seen.last = seen.read+1, max(seen.last, at)
}

// until waits until done reports true or fails. It holds c.mu while done runs.
func (c *crowd) until(ctx context.Context, done func() (bool, error)) error {
	return until(ctx, "all watchers to read the same", patience, lookEvery, func(context.Context) (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		ok, err := done()
		return ok, errors.Join(err, c.failed)
	})
}

// reached removes the lines that all watchers have read. It returns how long each of these lines took
// to reach all watchers, in milliseconds, and whether one of them names leader as the leader.
func (c *crowd) reached(leader string) (took []float64, led bool, err error) {
	for line, seen := range c.lines {
		if seen.read < c.size {
			continue
		}
		var change api.Change
		if err := json.Unmarshal([]byte(line), &change); err != nil {
			return nil, false, fmt.Errorf("decode the watch: %w", err)
		}
		delete(c.lines, line)
		took = append(took, millis(seen.last.Sub(election.Instant(change.BoottimeNS))))
		led = led || change.Leader != nil && change.Leader.Name == leader
	}
	return took, led, nil
}

func (c *crowd) close() {
	var closing sync.WaitGroup
	for _, conn := range c.conns {
		closing.Go(func() { conn.conn.Close() })
	}
	closing.Wait()
}
