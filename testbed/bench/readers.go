package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
)

const (
	// readerCount ask a majority without end, for readersFor, about elections of
	// which there are readElections.
	readerCount   = 60
	readersFor    = 10 * time.Second
	readElections = 1000
	// readWithin is what an answer, or a refusal, may take, in milliseconds.
	readWithin = 500
)

// readers measures what readers that have a majority asked without end do to who
// leads.
func (b *bench) readers(ctx context.Context) error {
	reads, lost, err := b.crowdOfReaders(ctx, readElections, readerCount, readersFor)
	what := fmt.Sprintf("%d connections with consistency=quorum, %d elections: ", readerCount, readElections)
	b.add("readers_lost", what+"leads lost", "", &Target{Of: ofMax}, []float64{lost})
	b.add("readers_answered", what+"a read answered", "ms", &Target{ofMax, readWithin}, reads.answered)
	b.add("readers_refused", what+"a read refused", "ms", &Target{ofMax, readWithin}, reads.refused)
	b.add("readers_rate", what+"answers", "1/s", nil, []float64{float64(len(reads.answered)) / readersFor.Seconds()})
	return err
}

// reads are how long reads took, in milliseconds.
type reads struct{ answered, refused []float64 }

func (b *bench) crowdOfReaders(ctx context.Context, elections, count int, d time.Duration) (all reads, lost float64, err error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return all, 0, err
	}
	defer b.finish(r, &err)
	if _, err := r.agree(ctx); err != nil {
		return all, 0, err
	}
	r.unwatch()
	p := newPretenders(ctx, r.cluster.Hosts(), elections)
	defer p.close()
	if _, err := b.await(ctx, fmt.Sprintf("%d elections before %d readers", elections, count), p, 2*patience); err != nil {
		return all, 0, err
	}
	if err := sleep(ctx, d/5); err != nil { // what a start costs is over
		return all, 0, err
	}
	before := p.losses()
	for _, h := range r.cluster.Hosts() {
		b.progress(fmt.Sprintf("%d readers of %s", count, h.Name()), 0, 0)
		each, err := readQuorum(ctx, h, elections, count, d/time.Duration(b.o.Agents))
		if err != nil {
			return all, 0, err
		}
		all.answered, all.refused = append(all.answered, each.answered...), append(all.refused, each.refused...)
	}
	return all, float64(p.losses() - before), b.noteCounters(ctx, "readers", r.cluster.Hosts())
}

// readQuorum has many callers ask an agent without end.
func readQuorum(ctx context.Context, h *hosts.Host, elections, count int, d time.Duration) (all reads, err error) {
	var running sync.WaitGroup
	each, errs := make([]reads, count), make([]error, count)
	end := time.Now().Add(d)
	for i := range count {
		running.Go(func() {
			conn, err := net.Dial("unix", h.Config().Socket)
			if err != nil {
				errs[i] = fmt.Errorf("dial the agent: %w", err)
				return
			}
			defer conn.Close()
			from := bufio.NewReader(conn)
			for n := i; time.Now().Before(end) && ctx.Err() == nil && errs[i] == nil; n += count {
				errs[i] = each[i].read(conn, from, n%elections)
			}
		})
	}
	running.Wait()
	for _, e := range each {
		all.answered, all.refused = append(all.answered, e.answered...), append(all.refused, e.refused...)
	}
	return all, errors.Join(errs...)
}

// read asks once.
func (r *reads) read(conn net.Conn, from *bufio.Reader, of int) error {
	began := time.Now()
	if err := conn.SetDeadline(began.Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET /v1/elections/bench-%04d?consistency=quorum HTTP/1.1\r\nHost: d\r\n\r\n", of); err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	took := millis(time.Since(began))
	switch response.StatusCode {
	case http.StatusOK:
		r.answered = append(r.answered, took)
	case http.StatusServiceUnavailable:
		r.refused = append(r.refused, took)
	default:
		return fmt.Errorf("ask the agent: %s", response.Status)
	}
	return nil
}
