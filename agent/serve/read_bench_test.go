package serve_test

import (
	"net"
	"sync"
	"testing"
)

// BenchmarkElection measures one answer, with the caller's part, while callers with open connections ask as fast
// as they can.
func BenchmarkElection(b *testing.B) {
	a := stand(b)
	const callers = 16
	b.ReportAllocs()
	var running sync.WaitGroup
	work := make(chan struct{}, callers)
	for range callers {
		conn, err := net.Dial("unix", a.path)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		running.Go(func() {
			answer := make([]byte, 4096)
			request := []byte("GET /v1/elections/default HTTP/1.1\r\nHost: d\r\n\r\n")
			for range work {
				if _, err := conn.Write(request); err != nil {
					b.Error(err)
				}
				if n, err := conn.Read(answer); err != nil || string(answer[:15]) != "HTTP/1.1 200 OK" || n < 300 {
					b.Errorf("%q: %v", answer[:n], err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	running.Wait()
}
