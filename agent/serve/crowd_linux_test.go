package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
)

// files reduces the server to a quarter of its size, so that a test can crowd it: 640 places on the socket and
// 256 watches.
const files = 1018

// One reader's 2,560 idle connections, or its 1,024 watches, once kept all others from asking, resigning
// and watching.
func TestAReaderCannotCrowdOthersOut(t *testing.T) {
	t.Parallel() // the test waits
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as another user; CI runs this as root")
	}
	a := stand(t, func(c *serve.Config) {
		c.Files = files
		c.Access = policy(t, access.Config{}, access.Owner{UID: 4000, GID: 4001})
	})
	var open []net.Conn
	t.Cleanup(func() {
		for _, c := range open {
			c.Close()
		}
	})
	crowd := as{uid: 65534, gid: 65534}
	a.as(t, crowd) // from here on, every user may connect
	ask := func(line string, n int) (refused int) {
		t.Helper()
		conns, err := crowd.dialMany(a.path, n)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conns...)
		for _, c := range conns {
			if line == "" {
				continue
			}
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: d\r\n\r\n", line)
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				refused++
			}
		}
		return refused
	}
	if refused := ask("/v1/elections/default/watch", 256); refused < 256*3/4 {
		t.Errorf("one reader was refused %d of 256 watches, want three quarters", refused)
	}
	ask("", 640)
	ask("/v1/agent", 640)

	a.handsOver()
	for _, uid := range []uint32{0, 4000} {
		friend := a.as(t, as{uid: uid, gid: 4444})
		if status, text := friend.do(t, "GET", "/leader", ""); status != 200 && uid == 0 || text == "" {
			t.Errorf("user %d: is-leader: %d %s", uid, status, text)
		}
		for _, call := range []string{"resign", "transfer"} {
			if status, text := friend.do(t, "POST", "/v1/elections/default/"+call, `{"to":"b"}`); status != 200 {
				t.Errorf("user %d: %s: %d %s", uid, call, status, text)
			}
		}
		response, err := friend.client.Get("http://d/v1/elections/default/watch")
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || !strings.Contains(line, "snapshot") {
			t.Errorf("user %d: watch: %q %v", uid, line, err)
		}
		response.Body.Close()
	}
	// Another reader gets one of the places that are not reserved.
	if status, _ := a.as(t, as{uid: 4005, gid: 4444}).do(t, "GET", "/v1/agent", ""); status != 200 {
		t.Errorf("another reader: %d", status)
	}
}

// listener serves the read-only part of the API on loopback.
func (a *agent) listener(t *testing.T, change ...func(*serve.Config)) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := serve.Config{
		Self: self, Picture: a.picture.Load, Clock: a.clock, Hub: watch.NewHub(0),
		Metrics: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler), Commands: a, Files: files,
		Preemption: func() (bool, time.Duration) { return false, 0 }, History: func(string, int) []api.Transition { return nil },
	}
	for _, f := range change {
		f(&c)
	}
	s := serve.New(c)
	s.TCP(l)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return l.Addr()
}

// 512 idle connections once made HAProxy take the leader for down, and so did a few connections that never
// finished a request.
func TestIdleConnectionsDoNotKeepALoadBalancerFromTheLeader(t *testing.T) {
	for name, c := range map[string]struct {
		from  int // number of addresses
		send  string
		reads bool
	}{
		"idle, of one address":              {1, "GET /leader HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", true},
		"idle, of many addresses":           {64, "GET /leader HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", true},
		"nothing sent, of many addresses":   {64, "", false},
		"half a request, of many addresses": {64, "GET /leader HTTP/1.1\r\nHost: 127.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			addr := stand(t).listener(t)
			check := func(when string) {
				t.Helper()
				dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
				transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
				client := &http.Client{Transport: transport, Timeout: patience}
				response, err := client.Get("http://" + addr.String() + "/leader")
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				defer response.Body.Close()
				if text, _ := io.ReadAll(response.Body); response.StatusCode != 200 || string(text) != "a\n" {
					t.Fatalf("%s: %d %q", when, response.StatusCode, text)
				}
			}
			for i := range 192 { // more than there are places
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%c.from))}}
				conn, err := dialer.Dial("tcp", addr.String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, c.send)
				if c.reads {
					_, _ = http.ReadResponse(bufio.NewReader(conn), nil)
				}
				if i%16 == 0 {
					check(fmt.Sprintf("after %d", i))
				}
			}
			check("at the end")
		})
	}
}

// A web page from elsewhere can make its own host name resolve to this address.
func TestAForeignHostReadsNothing(t *testing.T) {
	addr := stand(t).listener(t, func(c *serve.Config) { c.Hosts = []string{"Node-1", "node-1.example.org"} })
	ask := func(host, path string) (int, string) {
		t.Helper()
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if host == "" { // as HAProxy's httpchk does
			fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path)
		} else {
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	for _, host := range []string{"", "127.0.0.1", "127.0.0.1:7948", "[::1]:7948", "[::1]", "::1", "localhost", "LOCALHOST:80", "node-1", "node-1.example.org:7948", "node-1.example.org."} {
		if status, text := ask(host, "/"); status != 200 || !strings.Contains(text, "<html") {
			t.Errorf("%q: %d %.80q, want the page", host, status, text)
		}
		if status, text := ask(host, "/leader"); status != 200 || text != "a\n" {
			t.Errorf("%q: /leader: %d %q", host, status, text)
		}
	}
	for _, host := range []string{"evil.example.org", "evil.example.org:7948", "localhost.evil.org", "1.2.3.4.evil.org", "node-1.evil.org", "other"} {
		for _, path := range []string{"/", "/metrics", "/nothing"} {
			if status, text := ask(host, path); status != 403 || !strings.Contains(text, `"code":"forbidden"`) || !strings.Contains(text, "http-hosts") {
				t.Errorf("%q: %s: %d %.80q, want 403", host, path, status, text)
			}
		}
		for _, path := range []string{"/leader", "/readyz"} { // a load balancer asks under the name of its service
			if status, text := ask(host, path); status != 200 || text != "" {
				t.Errorf("%q: %s: %d %q, want the status alone", host, path, status, text)
			}
		}
	}
}
