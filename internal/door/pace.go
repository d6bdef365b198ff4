package door

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/doyen-election/doyen/election"
)

// maxSources bounds how many sources a Pace remembers.
const maxSources = 1024

// Pace bounds how often each source may do something. It is safe for concurrent use.
type Pace[S comparable] struct {
	each  rate.Limit
	burst int

	mu sync.Mutex
	of map[S]*rate.Limiter
}

// NewPace allows a source `each` units per second, and `burst` units at once after a rest.
func NewPace[S comparable](each float64, burst int) *Pace[S] {
	return &Pace[S]{each: rate.Limit(each), burst: burst, of: map[S]*rate.Limiter{}}
}

// Left returns how much the source may do now.
func (p *Pace[S]) Left(now election.Instant, source S) float64 {
	return p.limiter(now, source).TokensAt(at(now))
}

// Take counts n for the source. If the source may not do so much now, it counts nothing and returns
// false.
func (p *Pace[S]) Take(now election.Instant, source S, n int) bool {
	return p.limiter(now, source).AllowN(at(now), n)
}

// Spend counts n, but at most burst, even if the source has less left: the cost was known only afterwards. What
// is left may then be below zero.
func (p *Pace[S]) Spend(now election.Instant, source S, n int) {
	p.limiter(now, source).ReserveN(at(now), min(n, p.burst))
}

func (p *Pace[S]) limiter(now election.Instant, source S) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.of[source]
	if l == nil {
		p.forget(now)
		l = rate.NewLimiter(p.each, p.burst)
		p.of[source] = l
	}
	return l
}

// forget makes room in a full Pace. It drops the sources that have their whole burst left. If that is not
// enough, it drops all.
func (p *Pace[S]) forget(now election.Instant) {
	if len(p.of) < maxSources {
		return
	}
	maps.DeleteFunc(p.of, func(_ S, l *rate.Limiter) bool { return l.TokensAt(at(now)) >= float64(p.burst) })
	if len(p.of) >= maxSources {
		clear(p.of)
	}
}

func at(now election.Instant) time.Time { return time.Unix(0, int64(now)) }
