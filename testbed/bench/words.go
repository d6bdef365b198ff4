package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	manyWords   = 1000
	wordWriters = 8
	// wordSize is about the size of a job's word in bytes.
	wordSize = 240
	// wordVoters is how many agents are voters. One more agent is there to replace a voter.
	wordVoters = 3

	jobElections  = 200
	jobsPerSecond = 1000
	jobsWatch     = time.Minute
)

func wordOf(n int) string { return fmt.Sprintf("%0*d", wordSize, n) }

// words measures writes, takeovers with and without a word, and what a thousand words cost.
func (b *bench) words(ctx context.Context) error {
	err := b.quiet(ctx, b.config(), func(_ *rig, leader *hosts.Host) error {
		return leading(ctx, leader, contested, func(l *client.Leadership) error {
			for n := range b.rounds(200) {
				began := boottime.Now()
				if err := l.Write(ctx, wordOf(n)); err != nil {
					return err
				}
				b.add("Words/claim", took(boottime.Now().Sub(began), perWrite))
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, kept := range []string{"without", "with"} {
		name := "Words/takeover=" + kept
		err := b.quiet(ctx, b.config(), func(r *rig, leader *hosts.Host) error {
			if kept == "with" {
				if err := leading(ctx, leader, contested, writeWord(ctx)); err != nil {
					return err
				}
			}
			return b.replace(ctx, name, b.rounds(40), r, campaigning, strikes()["kill"])
		})
		if err != nil {
			return err
		}
	}
	return b.thousandWords(ctx)
}

// leading lets a program of this process lead an election, and calls act.
func leading(ctx context.Context, h *hosts.Host, election string, act func(*client.Leadership) error) error {
	c := client.New(h.Config().Socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l, err := c.Campaign(ctx, election)
	if err != nil {
		return err
	}
	return errors.Join(act(l), l.Close())
}

func writeWord(ctx context.Context) func(*client.Leadership) error {
	return func(l *client.Leadership) error { return l.Write(ctx, wordOf(0)) }
}

// leadMany leads a thousand elections for a moment each.
func leadMany(ctx context.Context, r *rig, act func(*client.Leadership) error) error {
	var programs sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, wordWriters)
	for w := range wordWriters {
		programs.Go(func() {
			for n := next.Add(1); n <= manyWords && errs[w] == nil; n = next.Add(1) {
				errs[w] = leading(ctx, r.Cluster.Hosts()[0], fmt.Sprintf("bench-%04d", n), act)
			}
		})
	}
	programs.Wait()
	return errors.Join(errs...)
}

// thousandWords compares agents that keep a thousand words with the same agents without any.
func (b *bench) thousandWords(ctx context.Context) error {
	c := b.config()
	c.Agents = max(c.Agents, wordVoters+1)
	voters := c.Names()[:wordVoters]
	c.Adjust = func(_ int, a *settings.Config) { a.Voters = voters }
	return b.quiet(ctx, c, func(r *rig, _ *hosts.Host) error {
		// In both cases a thousand elections were led, so the history has the same length.
		if err := leadMany(ctx, r, func(*client.Leadership) error { return nil }); err != nil {
			return err
		}
		none, err := b.kept(ctx, r, 0)
		if err != nil {
			return err
		}
		b.progress(fmt.Sprintf("writing %d words", manyWords), 0, 0)
		if err := leadMany(ctx, r, writeWord(ctx)); err != nil {
			return err
		}
		many, err := b.kept(ctx, r, manyWords)
		for i, unit := range []string{"MiB-more", "ms-more/start", "ms-more/change"} {
			if err == nil {
				b.add("Words/more", value{Value: median(many[i]) - median(none[i]), Unit: unit})
			}
		}
		return err
	})
}

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }

// kept measures agents that keep n words: their memory, their starts, and replacements of a voter.
func (b *bench) kept(ctx context.Context, r *rig, n int) (samples [3][]float64, err error) {
	name, all := fmt.Sprintf("Words/kept=%d", n), r.Cluster.Hosts()
	add := func(i int, x float64, unit string) {
		b.add(name, value{Value: x, Unit: unit})
		samples[i] = append(samples[i], x)
	}
	err = b.repeat(name+", starts", b.rounds(2), func() error {
		for _, h := range all[:wordVoters] {
			started, err := r.renewed(ctx, h)
			if err != nil {
				return err
			}
			add(1, millis(started), "ms/start")
		}
		return nil
	})
	if err == nil {
		err = observe.Sleep(ctx, min(busySettle+idleSettle, 3*b.window()))
	}
	for _, h := range all[:wordVoters] {
		mib, _, memoryErr := readMemory(h.PID())
		add(0, mib, rss)
		err = errors.Join(err, memoryErr)
	}
	if err != nil {
		return samples, err
	}
	former, newest := all[wordVoters-1].Name(), all[wordVoters].Name()
	err = b.repeat(name+", voters replaced", b.rounds(1), func() error {
		c := client.New(all[0].Config().Socket)
		defer c.Close()
		for range 2 { // replace a voter, and then the new voter by the former one
			began := boottime.Now()
			for _, change := range []api.VotersRequest{{Add: newest}, {Remove: former}} {
				if _, err := c.ChangeVoters(ctx, change); err != nil {
					return err
				}
			}
			add(2, millis(boottime.Now().Sub(began)), "ms/change")
			former, newest = newest, former
		}
		return nil
	})
	return samples, err
}

// renewed ends an agent and starts it again. It returns how long after the start the agent had a quorum.
func (r *rig) renewed(ctx context.Context, h *hosts.Host) (after time.Duration, err error) {
	if _, err := h.Terminate(); err != nil {
		return 0, err
	}
	if err := r.Ended(ctx, patience, h); err != nil {
		return 0, err
	}
	at, err := h.Start()
	if err != nil {
		return 0, err
	}
	c := client.New(h.Config().Socket)
	defer c.Close()
	return after, until(ctx, "the start of "+h.Name(), patience, askEvery, func(ctx context.Context) (bool, error) {
		agent, err := c.Agent(ctx)
		after = boottime.Now().Sub(at)
		return err == nil && agent.Quorum.State != api.QuorumLost, nil
	})
}

// jobs lets the leaders of many elections claim and end jobsPerSecond occurrences a second in all.
func (b *bench) jobs(ctx context.Context) error {
	return b.quiet(ctx, b.config(), func(r *rig, _ *hosts.Host) error {
		c := newCandidates(ctx, r.Cluster.Hosts(), jobElections)
		defer c.close()
		var done atomic.Int64
		c.work = func(l *client.Leadership) {
			tick := time.NewTicker(jobElections * time.Second / jobsPerSecond)
			defer tick.Stop()
			for n := 0; l.Context().Err() == nil && c.ctx.Err() == nil; n++ {
				if l.Write(c.ctx, "claim "+wordOf(n)) == nil && l.Write(c.ctx, "end "+wordOf(n)) == nil {
					done.Add(1)
				}
				select {
				case <-tick.C:
				case <-l.Context().Done():
				case <-c.ctx.Done():
				}
			}
		}
		what := fmt.Sprintf("jobs in %d elections", jobElections)
		c.where(everywhere)
		if _, err := b.await(ctx, what, c, 2*patience, c.allLed); err != nil {
			return err
		}
		if err := observe.Sleep(ctx, idleSettle); err != nil { // until then the takeovers of the start have ended
			return err
		}
		before, began := done.Load(), boottime.Now()
		lost, err := b.watchLeads(ctx, what, c, jobsWatch)
		if err != nil {
			return err
		}
		rate := float64(done.Load()-before) / boottime.Now().Sub(began).Seconds()
		b.add("Jobs", value{Value: lost, Unit: leadsLost}, value{Value: rate, Unit: "occurrences/s"},
			value{Value: 100 * (1 - rate/jobsPerSecond), Unit: "%missing"})
		return nil
	})
}

// wordCosts are the measures of words and jobs.
func wordCosts(p Point) []measure {
	with := strings.TrimSpace(fmt.Sprintf("%d words of %d bytes more: ", manyWords, wordSize))
	many := fmt.Sprintf("%d occurrences a second over %d elections, each claimed and ended: ", jobsPerSecond, jobElections)
	return []measure{
		{"Words/claim", perWrite, "a claim: one write of a word by the leader", few(p, []Target{{ofMedian, 5}, {ofP99, 15}})},
		{"Words/takeover=without", perTakeover, "kill -9 of the program that leads → next elected, without a word", few(p, []Target{{ofMedian, 15}})},
		{"Words/takeover=with", perTakeover, "the same with a word", few(p, []Target{{ofMedian, 10}})},
		{"Words/takeover", overlapped, "two programs at once in these rounds, by their own stamps", []Target{{ofMax, 0}}},
		{"Words/kept", rss, "words: RSS of an agent that was started again", nil},
		{"Words/kept", "ms/start", "words: start of an agent → it has a quorum", nil},
		{"Words/kept", "ms/change", "words: one voter added, another removed", nil},
		{"Words/more", "MiB-more", with + " RSS", []Target{{ofMax, 2}}},
		{"Words/more", "ms-more/start", with + " start of an agent", []Target{{ofMax, 50}}},
		{"Words/more", "ms-more/change", with + " a voter replaced", []Target{{ofMax, 1000}}},
		{"Jobs", leadsLost, many + "leads lost", []Target{{ofMax, 0}}},
		{"Jobs", "occurrences/s", many + "reached", nil},
		{"Jobs", "%missing", many + "missing", []Target{{ofMax, 1}}},
	}
}
