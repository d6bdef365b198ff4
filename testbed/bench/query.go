package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	queryTime   = 4 * time.Second
	callers     = 16
	warmUpCalls = 500
)

// asking is one kept-alive connection to an agent's socket. It writes a request
// and parses the answer, without the goroutines of a full HTTP client, which
// would be measured too.
type asking struct {
	conn net.Conn
	r    *bufio.Reader
}

const request = "GET /v1/elections/" + string(election.Default) + " HTTP/1.1\r\nHost: d\r\n\r\n"

func newAsking(socket string) (*asking, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("dial the agent: %w", err)
	}
	return &asking{conn, bufio.NewReader(conn)}, nil
}

func (a *asking) ask() error {
	if err := a.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(a.conn, request); err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	response, err := http.ReadResponse(a.r, nil)
	if err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the agent: %s", response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// queries are the figures of asking a follower's agent who leads.
type queries struct {
	one    []float64 // µs, one caller on one connection
	client []float64 // µs, the same by package client, JSON decoded
	many   []float64 // answers per second to 16 callers, a sample a second
	each   []float64 // µs, one answer to one of the 16
}

func (b *bench) queries(ctx context.Context) (q queries, err error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return q, err
	}
	defer b.finish(r, &err)
	a, err := r.agree(ctx)
	if err != nil {
		return q, err
	}
	r.unwatch()
	follower := r.cluster.Hosts()[0]
	for _, h := range r.cluster.Hosts() {
		if h.Name() != a.Leader {
			follower = h
		}
	}
	if err := sleep(ctx, time.Second); err != nil { // the start is over
		return q, err
	}
	b.progress("queries, one caller", 0, 0)
	if q.one, err = askAlone(ctx, follower); err != nil {
		return q, err
	}
	b.progress("queries, the Go client", 0, 0)
	if q.client, err = askByClient(ctx, follower); err != nil {
		return q, err
	}
	b.progress(fmt.Sprintf("queries, %d callers", callers), 0, 0)
	q.many, q.each, err = askTogether(ctx, follower)
	return q, err
}

func askAlone(ctx context.Context, h *hosts.Host) ([]float64, error) {
	a, err := newAsking(h.Config().Socket)
	if err != nil {
		return nil, err
	}
	defer a.conn.Close()
	return timed(ctx, a.ask)
}

func askByClient(ctx context.Context, h *hosts.Host) ([]float64, error) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	return timed(ctx, func() error {
		_, err := c.Election(ctx, string(election.Default), client.ElectionOptions{})
		return err
	})
}

// timed makes calls for a while and returns how long each took, in
// microseconds.
func timed(ctx context.Context, call func() error) ([]float64, error) {
	for range warmUpCalls {
		if err := call(); err != nil {
			return nil, err
		}
	}
	var took []float64
	for end := time.Now().Add(queryTime); time.Now().Before(end) && ctx.Err() == nil; {
		began := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began))/float64(time.Microsecond))
	}
	return took, context.Cause(ctx)
}

// askTogether has many callers ask as fast as they can, each on a connection of
// its own, and returns the answers of each second, and how long each answer
// took, in microseconds.
func askTogether(ctx context.Context, h *hosts.Host) (rates, took []float64, err error) {
	var all []*asking
	defer func() {
		for _, a := range all {
			a.conn.Close()
		}
	}()
	for range callers {
		a, err := newAsking(h.Config().Socket)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, a)
	}
	for range int(queryTime / time.Second) {
		began := time.Now()
		answers, err := askFor(ctx, all, time.Second)
		if err != nil {
			return nil, nil, err
		}
		rates = append(rates, float64(len(answers))/time.Since(began).Seconds())
		took = append(took, answers...)
	}
	return rates, took, context.Cause(ctx)
}

func askFor(ctx context.Context, all []*asking, d time.Duration) ([]float64, error) {
	end := time.Now().Add(d)
	took, errs := make([][]float64, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, a := range all {
		running.Go(func() {
			for now := time.Now(); now.Before(end) && ctx.Err() == nil && errs[i] == nil; {
				errs[i] = a.ask()
				answered := time.Now()
				took[i] = append(took[i], float64(answered.Sub(now))/float64(time.Microsecond))
				now = answered
			}
		})
	}
	running.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}
