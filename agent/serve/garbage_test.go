package serve_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A connection that sends something other than HTTP, half a request or too much is closed. Meanwhile proper
// requests are answered.
func TestGarbageOnTheSocketHarmsNobody(t *testing.T) {
	t.Parallel() // the test waits
	a := stand(t)
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", a.path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		return c
	}
	for name, said := range map[string]string{
		"no HTTP":      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"zeros":        strings.Repeat("\x00", 64<<10),
		"endless line": "GET /" + strings.Repeat("x", 64<<10),
		"many headers": "GET /livez HTTP/1.1\r\nHost: d\r\n" + strings.Repeat("X-Header: value\r\n", 8<<10),
		"two lengths":  "POST /v1/drain HTTP/1.1\r\nHost: d\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}",
		"bad chunks":   "POST /v1/drain HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"no host":      "GET /livez HTTP/1.1\r\n\r\n",
		"HTTP/2":       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		c := dial()
		_, _ = io.WriteString(c, said) // the connection may be closed before all is written
		answer, _ := io.ReadAll(c)     // until the server closes the connection
		if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") && !strings.HasPrefix(string(answer), "HTTP/1.1 505") {
			t.Errorf("%s was answered with %.80q", name, answer)
		}
	}
	half := dial() // stays open with half a request
	if _, err := io.WriteString(half, "POST /v1/drain HTTP/1.1\r\nHost: d\r\nContent-Le"); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		dial()
	}
	if status, text := a.do(t, "GET", "/livez", ""); status != 200 {
		t.Errorf("meanwhile: %d %q", status, text)
	}
}

// A request that never ends runs into a time limit.
func TestHalfARequestIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, listener := idle()
		server.Socket(listener)
		for said, want := range map[string]string{
			"GET /livez HT": "",
			"GET /livez HTTP/1.1\r\nHost: d\r\nX-Slow: ":                                     "",
			"GET /any HTTP/1.1\r\nHost: d\r\nContent-Length: 5\r\n\r\n":                      "HTTP/1.1 400",
			"POST /v1/drain HTTP/1.1\r\nHost: d\r\nContent-Length: 5\r\n\r\n{":               "HTTP/1.1 400",
			"POST /v1/drain HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{": "HTTP/1.1 400",
			"POST /v1/drain HTTP/1.1\r\nHost: d\r\nContent-Length: 99999\r\n\r\n":            "HTTP/1.1 413",
			"POST /v1/drain HTTP/1.1\r\nHost: d\r\nContent-Length: 9999999\r\n\r\n":          "HTTP/1.1 413",
		} {
			c := listener.dial()
			if _, err := io.WriteString(c, said); err != nil {
				t.Fatal(err)
			}
			began := time.Now() // by the bubble's clock
			answer, _ := io.ReadAll(c)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%q was waited for %s", said, took)
			}
			if !strings.HasPrefix(string(answer), want) {
				t.Errorf("%q was answered with %q, want %s", said, answer, want)
			}
			c.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = server.Close(ctx)
	})
}

// An idle connection does not keep its place.
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, socket := idle()
		page, tcp := idle()
		server.Socket(socket)
		page.TCP(tcp)
		for l, want := range map[*pipes]time.Duration{socket: 10 * time.Second, tcp: 5 * time.Second} {
			c := l.dial()
			if _, err := io.WriteString(c, "GET /any HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer := bufio.NewReader(c)
			response, err := http.ReadResponse(answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			began := time.Now() // by the bubble's clock
			if _, err := answer.ReadByte(); err == nil || time.Since(began) != want {
				t.Errorf("an idle connection ended after %s (%v), want %s", time.Since(began), err, want)
			}
			c.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = server.Close(ctx)
		_ = page.Close(ctx)
	})
}
