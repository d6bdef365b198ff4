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
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	queryTime   = 4 * time.Second
	callers     = 16
	warmUpCalls = 500
)

// asking is a kept-alive connection to an agent's socket. It writes a request and parses the
// answer. A full HTTP client would use goroutines, and their cost would be measured too.
type asking struct {
	conn net.Conn
	r    *bufio.Reader
}

func newAsking(h *hosts.Host) (*asking, error) {
	conn, err := net.Dial("unix", h.Config().Socket)
	if err != nil {
		return nil, fmt.Errorf("dial the agent: %w", err)
	}
	return &asking{conn, bufio.NewReader(conn)}, nil
}

// get sends a GET, and returns the answer, which may be a refusal.
func (a *asking) get(path string) (*http.Response, error) {
	if _, err := io.WriteString(a.conn, "GET "+path+" HTTP/1.1\r\nHost: d\r\n\r\n"); err != nil {
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	response, err := http.ReadResponse(a.r, nil)
	return response, wrap.Error(err, "read the agent's answer")
}

// ask sends a GET, reads the answer to its end, and returns its status.
func (a *asking) ask(path string) (status int, err error) {
	if err := a.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	response, err := a.get(path)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, wrap.Error(err, "read the agent's answer")
}

func (a *asking) leader() error {
	status, err := a.ask("/v1/elections/" + string(election.Default))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("ask the agent: %d %s", status, http.StatusText(status))
	}
	return err
}

// query measures how soon a follower's agent answers which agent leads.
func (b *bench) query(ctx context.Context) (err error) {
	return b.quiet(ctx, b.config(), func(r *rig, leader *hosts.Host) error {
		follower := r.other(leader)
		if err := observe.Sleep(ctx, time.Second); err != nil { // the costs of the start have ended by then
			return err
		}
		b.progress("queries, one caller", 0, 0)
		one, err := askAlone(ctx, follower)
		if err != nil {
			return err
		}
		b.addAll("Query/by=socket", perAnswer, thin(one))
		b.progress("queries, the Go client", 0, 0)
		decoded, err := askByClient(ctx, follower)
		if err != nil {
			return err
		}
		b.addAll("Query/by=client", perAnswer, thin(decoded))
		b.progress(fmt.Sprintf("queries, %d callers", callers), 0, 0)
		return b.askTogether(ctx, follower)
	})
}

// maxSamples bounds the samples of a figure, so that the report stays readable.
const maxSamples = 1000

// thin keeps maxSamples samples, evenly chosen from the least to the greatest.
func thin(samples []float64) []float64 {
	if len(samples) <= maxSamples {
		return samples
	}
	sorted := slices.Sorted(slices.Values(samples))
	kept := make([]float64, maxSamples)
	for i := range kept {
		kept[i] = sorted[i*(len(sorted)-1)/(maxSamples-1)]
	}
	return kept
}

func askAlone(ctx context.Context, h *hosts.Host) ([]float64, error) {
	a, err := newAsking(h)
	if err != nil {
		return nil, err
	}
	defer a.conn.Close()
	return timed(ctx, a.leader)
}

func askByClient(ctx context.Context, h *hosts.Host) ([]float64, error) {
	c := client.New(h.Config().Socket)
	defer c.Close()
	return timed(ctx, func() error {
		_, err := c.Election(ctx, string(election.Default), client.ElectionOptions{})
		return err
	})
}

// timed repeats a call for a while and returns how long each took, in µs.
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

// together lets callers call as often as they can for a while, each on its own connection. The
// argument n of call counts the calls of one caller.
func together(ctx context.Context, h *hosts.Host, callers int, d time.Duration, call func(caller, n int, a *asking) error) error {
	var running sync.WaitGroup
	errs := make([]error, callers)
	end := time.Now().Add(d)
	for i := range callers {
		running.Go(func() {
			a, err := newAsking(h)
			if err != nil {
				errs[i] = err
				return
			}
			defer a.conn.Close()
			for n := 0; time.Now().Before(end) && ctx.Err() == nil && errs[i] == nil; n++ {
				errs[i] = call(i, n, a)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// askTogether lets many callers ask as fast as they can.
func (b *bench) askTogether(ctx context.Context, h *hosts.Host) error {
	const name = "Query/by=socket/callers=16"
	var took []float64
	for range int(queryTime / time.Second) {
		each, began := make([][]float64, callers), time.Now()
		err := together(ctx, h, callers, time.Second, func(i, _ int, a *asking) error {
			asked := time.Now()
			err := a.leader()
			each[i] = append(each[i], float64(time.Since(asked))/float64(time.Microsecond))
			return err
		})
		if err != nil {
			return err
		}
		answers := slices.Concat(each...)
		rate := float64(len(answers)) / time.Since(began).Seconds()
		b.add(name, value{Value: rate, Unit: answersPerSecond}, value{Value: 1e6 / rate, Unit: "µs-apart"})
		took = append(took, answers...)
	}
	b.addAll(name, perAnswer, thin(took))
	return context.Cause(ctx)
}

const (
	// readerCount readers send quorum reads for readersFor. Each sends one read after another.
	readerCount = 60
	readersFor  = 10 * time.Second
)

// reads has how long each read took, in milliseconds.
type reads struct{ answered, refused []float64 }

// askMajority measures how many leads are lost while many readers send quorum reads.
func (b *bench) askMajority(ctx context.Context, elections, count int, d time.Duration) (err error) {
	return b.amongElections(ctx, b.config(), "Readers", elections, d, func(r *rig) error {
		answers := 0
		for _, h := range r.Cluster.Hosts() {
			b.progress(fmt.Sprintf("%d readers of %s", count, h.Name()), 0, 0)
			each, err := readQuorum(ctx, h, elections, count, d/time.Duration(b.on.Agents))
			if err != nil {
				return err
			}
			answers += len(each.answered)
			b.addAll("Readers", perRead, thin(each.answered))
			b.addAll("Readers", perRefusal, thin(each.refused))
		}
		b.add("Readers", value{Value: float64(answers) / d.Seconds(), Unit: answersPerSecond})
		return nil
	})
}

// amongElections measures something while programs of every host lead elections, and counts the leads
// that they lose meanwhile.
func (b *bench) amongElections(ctx context.Context, config hosts.Config, name string, elections int, d time.Duration, measure func(*rig) error) error {
	return b.quiet(ctx, config, func(r *rig, _ *hosts.Host) error {
		c := newCandidates(ctx, r.Cluster.Hosts(), elections)
		defer c.close()
		c.where(everywhere)
		if _, err := b.await(ctx, fmt.Sprintf("%d elections", elections), c, 2*patience, c.allLed); err != nil {
			return err
		}
		if err := observe.Sleep(ctx, d/5); err != nil { // the costs of the start have ended by then
			return err
		}
		_, before := c.state()
		err := measure(r)
		_, after := c.state()
		b.add(name, value{Value: float64(after - before), Unit: leadsLost})
		return err
	})
}

// readQuorum lets many callers send quorum reads to an agent for a while.
func readQuorum(ctx context.Context, h *hosts.Host, elections, count int, d time.Duration) (all reads, err error) {
	each := make([]reads, count)
	err = together(ctx, h, count, d, func(i, n int, a *asking) error { return each[i].read(a, (i+n*count)%elections) })
	for _, e := range each {
		all.answered, all.refused = append(all.answered, e.answered...), append(all.refused, e.refused...)
	}
	return all, err
}

func (r *reads) read(a *asking, of int) error {
	began := time.Now()
	status, err := a.ask(fmt.Sprintf("/v1/elections/bench-%04d?consistency=quorum", of))
	if err != nil {
		return err
	}
	switch took := millis(time.Since(began)); status {
	case http.StatusOK:
		r.answered = append(r.answered, took)
	case http.StatusServiceUnavailable:
		r.refused = append(r.refused, took)
	default:
		return fmt.Errorf("ask the agent: %d %s", status, http.StatusText(status))
	}
	return nil
}
