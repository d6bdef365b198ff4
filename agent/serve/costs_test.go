package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/elector"
)

// get sends a request over TCP, on a new connection.
func get(t *testing.T, addr net.Addr, path string) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + addr.String() + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}

// 32 readers of the status page once cost the leader its lead, and 5 of 12 scrapes were refused.
func TestThePageAndTheMetricsAreMadeOnceASecond(t *testing.T) {
	var pages, scrapes atomic.Int64
	a := stand(t)
	addr := a.listener(t, func(c *serve.Config) {
		c.Files = 0
		c.History = func(string, int) []api.Transition { pages.Add(1); return nil }
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "scrape", scrapes.Add(1), r.Header.Get("Accept-Encoding"))
		})
	})
	crowd := func(n int64) {
		t.Helper()
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				for path, want := range map[string]string{"/": ": a leads</title>", "/metrics": fmt.Sprintf("scrape %d \n", n)} {
					if status, text := get(t, addr, path); status != 200 || !strings.Contains(text, want) {
						t.Errorf("%d: %s: %d %.80q, want %q", i, path, status, text, want)
					}
				}
			})
		}
		all.Wait()
		if pages.Load() != n || scrapes.Load() != n {
			t.Errorf("the page was made %d times, the metrics %d times, want %d", pages.Load(), scrapes.Load(), n)
		}
	}
	crowd(1)
	a.shows(elector.Leading, self, 7, a.clock().Add(5*time.Second))
	a.now.Add(int64(2 * time.Second))
	crowd(2)
	for range 5 { // one address gets the answer 12 times at once, and other addresses get it too
		_, text := get(t, addr, "/metrics")
		if strings.Contains(text, "asks for this more than 10 times a second") {
			return
		}
	}
	t.Error("one address may ask as often as it likes")
}

// A page that is kept may be a second old, but it names no leader whose lease has ended.
func TestThePageThatIsKeptNamesNoLeaderWhoseLeaseHasEnded(t *testing.T) {
	a := stand(t)
	a.shows(elector.Leading, self, 7, a.clock().Add(300*time.Millisecond))
	addr := a.listener(t)
	for after, want := range []string{"a leads", "a leads", "a leads", "nobody leads"} {
		if _, text := get(t, addr, "/"); !strings.Contains(text, "<title>: "+want) {
			t.Errorf("after %d00 ms: not %q", after, want)
		}
		a.now.Add(int64(100 * time.Millisecond))
	}
}

// By the agent's clock, each answer here takes 50 ms of the processor.
func TestCostlyAnswersTakeAShareOfTheProcessor(t *testing.T) {
	a := stand(t)
	addr := a.listener(t, func(c *serve.Config) {
		c.HTTPAPI = true
		c.History = func(string, int) []api.Transition { a.now.Add(int64(50 * time.Millisecond)); return nil }
	})
	answered := func() (n int) {
		t.Helper()
		for {
			status, text := get(t, addr, "/v1/history")
			switch {
			case status == 200:
				n++
			case status == 503 && strings.Contains(text, "the callers of --http together have taken more than 10%"):
				return n
			default:
				t.Fatalf("%d %s", status, text)
			}
		}
	}
	if n := answered(); n < 6 || n > 9 {
		t.Errorf("%d answers after a rest", n)
	}
	a.now.Add(int64(1900 * time.Millisecond))
	if n := answered(); n < 3 || n > 6 {
		t.Errorf("%d answers two seconds later", n)
	}
	for path, want := range map[string]int{"/v1/members": 503, "/v1/elections": 503, "/v1/campaigns": 503, "/v1/elections/default": 200, "/leader": 503, "/": 200, "/metrics": 404, "/livez": 200} {
		status, text := get(t, addr, path)
		if busy := strings.Contains(text, "busy"); status != want || busy != strings.HasPrefix(path, "/v1/") && want == 503 {
			t.Errorf("%s: %d %.80s, want %d", path, status, text, want)
		}
	}
}

// Each user has a share, and root is not limited.
func TestAUserWhoAsksTooMuchKeepsNobodyElseFromAsking(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as another user; CI runs this as root")
	}
	var a *agent
	a = stand(t, func(c *serve.Config) {
		c.Access = policy(t, access.Config{}, access.Owner{UID: 4000, GID: 4001})
		c.History = func(string, int) []api.Transition { a.now.Add(int64(400 * time.Millisecond)); return nil }
	})
	for _, c := range []struct {
		uid         uint32
		first, then int
	}{{4100, 200, 503}, {4200, 200, 503}, {4000, 200, 200}, {0, 200, 200}} {
		user := a.as(t, as{uid: c.uid, gid: 4444})
		for i, want := range []int{c.first, c.then} {
			if status, text := user.do(t, "GET", "/v1/history", ""); status != want {
				t.Errorf("user %d, call %d: %d %s, want %d", c.uid, i+1, status, text, want)
			}
		}
	}
}

// 640 unread answers once took all the memory that the agent may have.
func TestAnswersThatNobodyReadsTakeLittleMemory(t *testing.T) {
	long := []api.Transition{{Evidence: strings.Repeat("x", 3<<20)}}
	a := stand(t, func(c *serve.Config) { c.History = func(string, int) []api.Transition { return long } })
	ask := func() (net.Conn, *http.Response) {
		t.Helper()
		conn, err := net.Dial("unix", a.path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET /v1/history HTTP/1.1\r\nHost: d\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, response
	}
	var unread []*http.Response
	for range 4 { // each takes 2 MiB of 8 MiB
		_, response := ask()
		unread = append(unread, response)
	}
	if _, response := ask(); response.StatusCode != 503 {
		t.Errorf("a fifth: %d", response.StatusCode)
	}
	if status, _ := a.do(t, "GET", "/v1/elections/default", ""); status != 200 {
		t.Errorf("what takes no memory: %d", status)
	}
	a.now.Add(int64(time.Second))
	var response *http.Response
	for tries := 0; response == nil || response.StatusCode != 200; tries++ { // some answers are still being sent, and so are not idle yet
		if tries == 300 {
			t.Fatal("those that nobody reads keep their memory")
		}
		_, response = ask()
		a.now.Add(int64(time.Second))
	}
	if text, err := io.ReadAll(response.Body); err != nil || len(text) < 3<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	cut := 0
	for _, response := range unread {
		if _, err := io.ReadAll(response.Body); err != nil {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no connection was closed")
	}
}
