package transport

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func beat(i int) election.Message {
	return election.Heartbeat{Lineage: 1, Send: election.SendID(i), Version: election.Version{Counter: 1}, Claims: []election.Claim{{
		Election: "default", Term: 12, Remaining: time.Second,
		Rank: election.Rank{Priority: 100, JoinedAt: 1 << 60, Peer: "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5"},
	}}}
}

// One message is under way at a time; an operation is there and back.
func BenchmarkRoundTrip(b *testing.B) {
	x, y := pair(b)
	for i := 0; b.Loop(); i++ {
		x.Send(y.self, beat(i))
		<-y.Events()
		y.Send(x.self, beat(i))
		<-x.Events()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/way")
}

// Only so many messages are under way at once that none is dropped.
func BenchmarkThroughput(b *testing.B) {
	x, y := pair(b)
	room := make(chan struct{}, queueLength/2)
	go func() {
		for e := range y.Events() {
			if _, ok := e.(Message); ok {
				<-room
			}
		}
	}()
	for i := 0; b.Loop(); i++ {
		room <- struct{}{}
		if !x.Send(y.self, note(i)) {
			b.Fatal("dropped")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
