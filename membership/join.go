package membership

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/internal/base/each"
)

const (
	// eagerFor is how long seeds are tried without back-off, after the start or after members were lost,
	// so that agents that start together meet at once.
	eagerFor = 2 * time.Second
	// recently is how long a lost member is tried without back-off.
	recently = 10 * time.Minute
	// settledFor is how long a seed is not tried again after it was joined, even if no member has its
	// address: the address may be an alias or a load balancer.
	settledFor = 30 * time.Second
	resolveFor = 2 * time.Second
	// maxExchanges bounds how many exchanges of the whole member list this agent has under way. Each
	// costs both sides some milliseconds of a processor. If all agents start at once, and each joins all
	// others without a bound, no exchange ends in time.
	maxExchanges = 2
	// After an exchange, a rest follows that lasts exchangeRest times as long, since exchanges take long
	// on busy machines. exchangeRestMost bounds that rest.
	exchangeRest     = 8
	exchangeRestMost = 5 * time.Second
	// unreachedFor is how long a seed may be silent before it is reported.
	unreachedFor = 3 * time.Second
	maxResolved  = 16
	// oddFor is how long a seed that closes connections without an answer counts as a busy agent. After
	// that it counts as something that is not an agent.
	oddFor = 5 * time.Second
)

// joiner schedules the attempts to join seeds and lost members, without end: memberlist alone never tries
// again. The joiner belongs to the loop. Each attempt runs in a separate goroutine, at most one for each
// target.
type joiner struct {
	timing  timing
	isSelf  func(netip.AddrPort) bool
	join    func(addr string) error
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	done    chan attempt
	running *sync.WaitGroup

	targets    map[string]*target
	eagerUntil time.Time
	restUntil  time.Time // no exchange starts before that instant
}

// target is a seed or a lost member.
type target struct {
	seed   seed
	lostAt time.Time // zero for a seed
	fails  int       // failures that count for the back-off
	odd    int       // attempts in a row that failed as if the target were not an agent
	again  int       // exchanges in a row after which the target was still not listed
	next   time.Time
	began  time.Time
	busy   bool
	found  []netip.AddrPort // what the seed resolved to at the last try
	failed error            // why the last try failed; nil if the target answered
	dark   bool             // nothing accepted a connection at the last try
	slow   int              // tries in a row whose connection was accepted, but not answered in time
	since  time.Time        // when its tries started to fail
}

// addrs are the target's addresses, as the last try found them.
func (t *target) addrs() []netip.Addr {
	if a, err := netip.ParseAddr(t.seed.host); err == nil {
		return []netip.Addr{a.Unmap()}
	}
	return each.Of(t.found, netip.AddrPort.Addr)
}

// attempt is the outcome of one try.
type attempt struct {
	key   string
	found []netip.AddrPort
	tried map[netip.AddrPort]error // by address, why it was not joined; nil: joined
	err   error                    // of the name's resolution
}

func newJoiner(t timing, seeds []seed, now time.Time, isSelf func(netip.AddrPort) bool, join func(string) error, running *sync.WaitGroup) *joiner {
	j := &joiner{
		timing: t, isSelf: isSelf, join: join, resolve: resolve,
		done: make(chan attempt), running: running,
		targets: map[string]*target{}, eagerUntil: now.Add(eagerFor),
	}
	j.plant(seeds, now)
	return j
}

// seek replaces the lost members to be tried.
func (j *joiner) seek(lost map[netip.AddrPort]time.Time, now time.Time) {
	want := map[string]bool{}
	for addr, at := range lost {
		key := "lost " + addr.String()
		want[key] = true
		if t := j.targets[key]; t == nil {
			j.targets[key] = &target{seed: seed{host: addr.Addr().String(), port: addr.Port()}, lostAt: at, next: now}
		} else if t.lostAt.Before(at) {
			t.lostAt, t.fails = at, 0
		}
	}
	maps.DeleteFunc(j.targets, func(key string, t *target) bool { return !t.lostAt.IsZero() && !want[key] && !t.busy })
}

// hurry tries all seeds at once and often; it is called when members were lost.
func (j *joiner) hurry(now time.Time) {
	j.eagerUntil = now.Add(eagerFor)
	for _, t := range j.targets {
		if t.lostAt.IsZero() {
			t.next, t.fails = now, 0
		}
	}
}

// start begins the attempts that are due, and returns when to check again. Addresses that memberlist
// lists need no attempt.
func (j *joiner) start(ctx context.Context, now time.Time, listed map[netip.AddrPort]bool) time.Time {
	again := now.Add(time.Second)
	exchanges := 0
	for _, t := range j.targets {
		if t.busy && !t.dark {
			exchanges++
		}
	}
	for key, t := range j.targets { // in a random order
		if t.busy {
			continue
		}
		if !t.next.After(now) {
			// A try costs next to nothing while nothing accepts a connection. So such tries are not
			// counted.
			if !t.dark && exchanges >= maxExchanges {
				continue // when an exchange ends, the loop checks again
			}
			if !t.dark && now.Before(j.restUntil) {
				again = earlier(again, j.restUntil)
				continue
			}
			if t.settled(listed, j.isSelf) && now.Sub(t.began) < settledFor {
				t.next = now.Add(j.timing.lost)
			} else {
				t.busy, t.began = true, now
				if !t.dark {
					exchanges++
				}
				j.running.Go(func() { j.try(ctx, key, t.seed, listed) })
				continue
			}
		}
		again = earlier(again, t.next)
	}
	return again
}

// settled reports whether every address that the target last resolved to is listed, or is this agent's own.
func (t *target) settled(listed map[netip.AddrPort]bool, isSelf func(netip.AddrPort) bool) bool {
	for _, a := range t.found {
		if !listed[a] && !isSelf(a) {
			return false
		}
	}
	return len(t.found) > 0
}

// try resolves the target and joins each address that memberlist does not list.
func (j *joiner) try(ctx context.Context, key string, s seed, listed map[netip.AddrPort]bool) {
	addrs, err := j.resolve(ctx, s.host)
	r := attempt{key: key, tried: map[netip.AddrPort]error{}, err: err}
	var mu sync.Mutex
	var each sync.WaitGroup
	for _, a := range addrs {
		addr := netip.AddrPortFrom(a, s.port)
		r.found = append(r.found, addr)
		if listed[addr] || j.isSelf(addr) {
			continue
		}
		each.Go(func() {
			err := j.join(addr.String())
			mu.Lock()
			defer mu.Unlock()
			r.tried[addr] = err
		})
	}
	each.Wait()
	select {
	case j.done <- r:
	case <-ctx.Done():
	}
}

// finish takes an attempt's outcome and schedules the next try. It returns a refusal if the target seems
// not to be an agent of this cluster.
func (j *joiner) finish(r attempt, now time.Time, cluster string) []Refusal {
	t := j.targets[r.key]
	if t == nil {
		return nil
	}
	t.busy, t.found = false, r.found
	all := t.learn(r, now)
	if !t.dark && len(r.tried) > 0 {
		j.restUntil = later(j.restUntil, now.Add(min(exchangeRest*now.Sub(t.began), exchangeRestMost)))
	}
	j.schedule(t, all, len(r.tried) > 0, now)
	var odd []Refusal
	for addr, err := range r.tried {
		if why := oddity(err, cluster); why != "" {
			odd = append(odd, Refusal{Cause: CauseNoAgent, Addr: addr, Err: errors.New(addr.String() + why)})
		}
	}
	if t.odd++; len(odd) == 0 {
		t.odd = 0
	}
	// An agent that is just stopping, or that all others join at the same time, closes connections too,
	// but only for a short time.
	if t.odd < 3 || now.Sub(t.since) < oddFor {
		return nil
	}
	return odd
}

// learn records why the target can't be joined, and what schedule needs to know of the outcome. It returns
// whether the name was resolved and every address that was tried was joined.
func (t *target) learn(r attempt, now time.Time) (all bool) {
	err, slow, dark, joined := r.err, false, len(r.tried) > 0, false
	for _, addr := range r.found {
		words := ""
		failed, tried := r.tried[addr]
		if failed != nil {
			words = failed.Error() // memberlist hides the cause, see the function plainly
		}
		joined = joined || tried && failed == nil
		err = cmp.Or(err, failed)
		dark = dark && strings.Contains(words, "dial tcp")
		slow = slow || !dark && containsAny(words, "i/o timeout", "EOF", "connection reset by peer", "broken pipe")
	}
	all = err == nil
	if joined {
		err = nil
	}
	if t.failed == nil {
		t.since = now
	}
	t.failed, t.dark = err, dark
	if t.slow++; !slow {
		t.slow = 0
	}
	return all
}

// unreached returns a refusal for each seed that has not answered for a while.
func (j *joiner) unreached(now time.Time) []Refusal {
	var out []Refusal
	for _, key := range slices.Sorted(maps.Keys(j.targets)) {
		if t := j.targets[key]; t.lostAt.IsZero() && t.failed != nil && now.Sub(t.since) >= unreachedFor {
			out = append(out, Refusal{Cause: CauseSeed, Name: t.seed.String(), Err: plainly(t.failed)})
		}
	}
	return out
}

// plainly describes in a few words why an address can't be joined.
func plainly(err error) error {
	var name *net.DNSError
	if errors.As(err, &name) {
		return errors.New(name.Err)
	}
	text := strings.Join(strings.Fields(err.Error()), " ") // memberlist's list of errors hides the cause, which comes last
	return errors.New(strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:]))
}

func containsAny(s string, signs ...string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(s, sign) })
}

// schedule sets the time of the next try. The parameter all is the result of learn; tried: an address was tried.
func (j *joiner) schedule(t *target, all, tried bool, now time.Time) {
	switch {
	case t.slow > 0:
		// The target or this agent is busy. The pause is random, so that not all agents try again at
		// once.
		t.again = 0
		pause := min(j.timing.lostMost, j.timing.lost<<min(t.slow-1, 8))
		t.next = now.Add(pause/2 + rand.N(pause/2))
	case all:
		t.fails = 0
		switch {
		case !tried:
			t.again = 0
			t.next = now.Add(j.timing.lost)
		case !t.lostAt.IsZero() && t.again < 5:
			// The target answered. In the next exchange it will refute that it is dead.
			t.next = now.Add(j.timing.retry << t.again)
			t.again++
		case !t.lostAt.IsZero():
			t.next = now.Add(j.timing.lostMost)
		default:
			t.next = now.Add(settledFor)
		}
	case !t.lostAt.IsZero():
		t.fails++
		t.again = 0
		pause := j.timing.lost
		if now.Sub(t.lostAt) > recently {
			pause = min(j.timing.lostMost, pause<<min(t.fails, 8))
		}
		t.next = later(now, t.began.Add(pause))
	case now.Before(j.eagerUntil):
		t.next = now.Add(j.timing.retry)
	default:
		t.fails++
		pause := min(j.timing.retryMost, j.timing.retry<<min(t.fails, 10))
		t.next = now.Add(pause/2 + rand.N(pause/2)) // random, so that not all agents come at once to a seed that starts
	}
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// resolve looks up a host name. Nothing is cached, since addresses change.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	addrs = each.Of(addrs, netip.Addr.Unmap)
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	return addrs[:min(len(addrs), maxResolved)], nil
}

// oddity returns what is wrong with an address, if the failed join shows that no agent of this cluster seems
// to be there. Else it returns an empty string.
func oddity(err error, cluster string) string {
	switch {
	case err == nil:
		return ""
	case containsAny(err.Error(), "EOF", "connection reset by peer", "broken pipe"):
		return " closes the connection without an answer: it belongs to another cluster than " + cluster +
			", or is not the gossip port of an agent; compare the cluster names and the addresses to join"
	case strings.Contains(err.Error(), faultMessage.String()):
		return " does not answer like an agent: correct the addresses to join"
	}
	return ""
}
