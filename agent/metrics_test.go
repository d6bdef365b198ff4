package agent

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// slow is a collector that waits until all scrapes have begun or were refused.
type slow struct{ begun *sync.WaitGroup }

func (s slow) Describe(chan<- *prometheus.Desc) {}
func (s slow) Collect(chan<- prometheus.Metric) {
	s.begun.Done()
	s.begun.Wait()
}

// Of 12 scrapes at once, 5 were once refused. Only package serve may limit them.
func TestScrapesAtOnceAreAllAnswered(t *testing.T) {
	m, begun := newMetrics("x"), &sync.WaitGroup{}
	begun.Add(12)
	m.of.MustRegister(slow{begun})
	handler := m.handler()
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			out := httptest.NewRecorder()
			handler.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if out.Code != http.StatusOK {
				t.Errorf("%d %s", out.Code, out.Body)
				begun.Done()
			}
		})
	}
	all.Wait()
}
