package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

const patience = 30 * time.Second

// hall is a real registry behind a server. said has what the server sent to the registry.
type hall struct {
	mu       sync.Mutex
	registry *actors.Registry
	ids      int
	said     chan string
	path     string
	server   *Server
}

func (h *hall) Stand(q actors.Request) (*actors.Candidacy, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.Stand(0, q)
}

func (h *hall) Resume(q actors.Resumption) (*actors.Candidacy, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.Resume(0, q)
}

func (h *hall) End(id string) (election.Instant, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.registry.End(id)
	h.said <- "end " + id
	return h.registry.Awaits(id)
}

func (h *hall) Gone(id string) { h.said <- "gone " + id }

func (h *hall) Receipt(id string, name election.Name, term election.Term, why election.Reason, authorized func(uint32) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.Receipt(id, name, term, why, authorized)
}

func (h *hall) Campaigns() []api.Campaign {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.List()
}

func (h *hall) with(f func(*actors.Registry)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.registry)
}

// hosts starts a hall. change may alter the server, for example its patience.
func hosts(t *testing.T, change ...func(*Server)) *hall {
	t.Helper()
	h := &hall{said: make(chan string, 2*actors.MaxCandidacies)}
	h.registry = actors.New(actors.Config{Settings: actors.Settings{Priority: 100}, NewID: func() string { h.ids++; return fmt.Sprint("k", h.ids) }})
	dir, err := os.MkdirTemp("", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h.path = filepath.Join(dir, "run", "s")
	l, err := socket.Listen(h.path)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := access.Resolve(access.Config{}, access.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())})
	if err != nil {
		t.Fatal(err)
	}
	picture := &Picture{Status: &elector.Status{}, View: &membership.View{}}
	h.server = New(Config{
		Lease: time.Second, Picture: func() *Picture { return picture }, Clock: func() election.Instant { return 0 },
		Hub: watch.NewHub(0), Metrics: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler), Campaigns: h,
		Access: policy, Preemption: func() (bool, time.Duration) { return false, 0 },
	})
	for _, f := range change {
		f(h.server)
	}
	h.server.Socket(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = h.server.Close(ctx)
	})
	return h
}

func (h *hall) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-h.said:
		if got != want {
			t.Errorf("the server said %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("the server does not say %q", want)
	}
}

// post sends a request on a new connection, and returns the head and the body of the answer.
func (h *hall) post(t *testing.T, path, body string) (net.Conn, *http.Response, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: d\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, response, bufio.NewReader(response.Body)
}

func (h *hall) stand(t *testing.T) (net.Conn, *bufio.Reader, api.CampaignEvent) {
	t.Helper()
	conn, response, lines := h.post(t, "/v1/elections/payments/campaign", `{"meta":"me"}`)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(response.Status)
	}
	return conn, lines, line(t, lines)
}

func line(t *testing.T, from *bufio.Reader) api.CampaignEvent {
	t.Helper()
	text, err := from.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var e api.CampaignEvent
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

func TestACampaignIsItsConnection(t *testing.T) {
	h := hosts(t)
	conn, lines, first := h.stand(t)
	if first.Type != "candidate" || first.Campaign != "k1" || first.Election != "payments" {
		t.Errorf("first line %+v", first)
	}
	h.with(func(r *actors.Registry) { r.Lead(0, "payments", 3, 1000, nil, nil) })
	if e := line(t, lines); e.Type != "elected" || e.Term != 3 || e.ValidUntilBoottimeNS != 1000 {
		t.Errorf("got %+v", e)
	}
	if list := h.Campaigns(); len(list) != 1 || list[0].PID != os.Getpid() || list[0].Meta != "me" || list[0].Term != 3 {
		t.Errorf("listed as %+v", list)
	}
	h.with(func(r *actors.Registry) {
		r.Withdraw(election.Withdrawal{Election: "payments", Term: 3, StopBy: 2000, Reason: election.ReasonResigned}, nil)
	})
	if e := line(t, lines); e.Type != "revoked" || e.StopByBoottimeNS != 2000 || e.Reason != "resigned" {
		t.Errorf("got %+v", e)
	}
	if _, response, body := h.post(t, "/v1/campaigns/k1/stopped", `{"term":3}`); response.StatusCode != http.StatusOK {
		text, _ := body.ReadString('\n')
		t.Errorf("the receipt: %s %s", response.Status, text)
	}
	h.with(func(r *actors.Registry) {
		if c := &r.Counters; c.ByReceipt.Load() != 1 {
			t.Errorf("counted %+v", c)
		}
	})
	conn.Close()
	h.expect(t, "end k1")
}

// The process that closes is this test, which goes on, so nothing is proven.
func TestAProgramThatOnlyClosesIsNotGone(t *testing.T) {
	h := hosts(t)
	conn, lines, _ := h.stand(t)
	h.with(func(r *actors.Registry) {
		r.Lead(0, "payments", 3, 1000, nil, nil)
		r.Withdraw(election.Withdrawal{Election: "payments", Term: 3, StopBy: election.Instant(50 * time.Millisecond)}, nil)
	})
	line(t, lines)
	conn.Close()
	h.expect(t, "end k1")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.server.Close(ctx); err != nil { // Close waits for the stream
		t.Fatal(err)
	}
	if len(h.said) > 0 {
		t.Error("the server said", <-h.said)
	}
}

func TestALineThatNobodyReadsEndsTheCandidacyAndSaysWhy(t *testing.T) {
	h := hosts(t, func(s *Server) { s.candidacies.attention = 50 * time.Millisecond })
	_, lines, _ := h.stand(t)
	stop := make(chan struct{})
	written := make(chan struct{})
	go func() { // until the connection takes no more
		defer close(written)
		for until := election.Instant(1); ; until++ {
			h.with(func(r *actors.Registry) {
				if until == 1 {
					r.Lead(0, "payments", 1, until, nil, nil)
				}
				r.Prolong("payments", 1, until)
			})
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	h.expect(t, "end k1")
	close(stop)
	<-written
	var last api.CampaignEvent
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &last); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if last.Type != "revoked" || !strings.Contains(last.Reason, "not read for too long") {
		t.Errorf("the last line is %+v", last)
	}
}

// The connection would take much more. The candidacy ends because the program does not read.
func TestAProgramThatLeadsAndDoesNotLookIsGivenUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what of a socket was read; CI runs on it")
	}
	h := hosts(t, func(s *Server) { s.candidacies.attention = 50 * time.Millisecond })
	_, lines, _ := h.stand(t)
	h.with(func(r *actors.Registry) { r.Lead(0, "payments", 1, 1, nil, nil) })
	renewals := time.NewTicker(5 * time.Millisecond)
	defer renewals.Stop()
	for until := election.Instant(2); ; until++ {
		h.with(func(r *actors.Registry) {
			r.Prolong("payments", 1, until)
		})
		select {
		case said := <-h.said:
			if said != "end k1" {
				t.Fatal(said)
			}
			text, err := io.ReadAll(lines)
			if err != nil || !strings.HasSuffix(string(text), "not read for too long\"}\n") {
				t.Errorf("it ends with %.200s %v", text[max(0, len(text)-200):], err)
			}
			return
		case <-renewals.C:
		}
	}
}

// If the connection takes no more lines, the candidacy ends no later than if it took them.
func TestALineThatFindsNoRoomWaitsNoLongerThanALineMayBeUnread(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what of a socket was read; CI runs on it")
	}
	h := hosts(t, func(s *Server) { s.candidacies.attention = 300 * time.Millisecond })
	h.stand(t)
	h.with(func(r *actors.Registry) { r.Lead(0, "payments", 1, 1, nil, nil) })
	limit := time.Now().Add(patience)
	for until := election.Instant(2); len(h.said) == 0 && time.Now().Before(limit); until++ {
		h.with(func(r *actors.Registry) {
			r.Prolong("payments", 1, until)
		})
	}
	h.expect(t, "end k1")
}

func TestAProgramThatTalksIsHeardOutAndEnded(t *testing.T) {
	h := hosts(t)
	conn, _, _ := h.stand(t)
	fmt.Fprint(conn, "\r\n") // harmless
	if _, err := conn.Write(make([]byte, maxChatter)); err != nil {
		t.Log(err) // cut off already
	}
	h.expect(t, "end k1")
}

func TestCloseLetsCampaignsReadTheirLastLine(t *testing.T) {
	h := hosts(t)
	_, lines, _ := h.stand(t)
	h.with(func(r *actors.Registry) { r.Close("the agent stops") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.server.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if e := line(t, lines); e.Type != "revoked" || e.Reason != "the agent stops" {
		t.Errorf("got %+v", e)
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream goes on: %v", err)
	}
}

func TestCampaignsThatMakeNoSenseAreRefused(t *testing.T) {
	h := hosts(t)
	const right = "/v1/elections/payments/campaign"
	for _, c := range []struct {
		path, body, want string
		status           int
	}{
		{right, `{"meta":"` + strings.Repeat("m", maxMeta+1) + `"}`, "at most 256", 400},
		{right, `{"priority":-1}`, "between 0 and 1000000", 400},
		{right, `{"priority":"high"}`, `\"priority\" must be an integer`, 400},
		{right, `[]`, "must be a JSON object", 400},
		{right, `{"meta":"` + strings.Repeat("m", maxBody) + `"}`, "over the limit", 413},
		{"/v1/elections/_roster/campaign", `{}`, "not a valid election name", 400},
		{"/v1/elections/" + strings.Repeat("n", 64) + "/campaign", `{}`, "not a valid election name", 400},
		{"/v1/campaigns/nobody/stopped", `{}`, "no campaign on this host has this ID", 404},
		{"/v1/campaigns/nobody/stopped", `{"term":-1}`, "must be an integer", 400},
	} {
		_, response, body := h.post(t, c.path, c.body)
		text, _ := body.ReadString('\n')
		if response.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %.40s: %d %s, want %d and %q", c.path, c.body, response.StatusCode, text, c.status, c.want)
		}
	}
	if n := len(h.Campaigns()); n != 0 {
		t.Errorf("%d of them stand", n)
	}
}

// As many campaigns as possible, and as many that are refused, leave places for plain calls.
func TestTooManyCampaignsLeaveRoomForPlainCalls(t *testing.T) {
	h := hosts(t)
	for i := range actors.MaxCandidacies {
		conn, response, _ := h.post(t, fmt.Sprintf("/v1/elections/e%d/campaign", i), "")
		if response.StatusCode != http.StatusOK {
			t.Fatalf("campaign %d: %s", i, response.Status)
		}
		defer conn.Close()
	}
	for range 600 { // more than the places for plain calls
		_, response, body := h.post(t, "/v1/elections/payments/campaign", "")
		text, _ := body.ReadString('\n')
		if response.StatusCode != http.StatusServiceUnavailable || !response.Close || !strings.Contains(text, "1000 programs on this host are candidates") {
			t.Fatalf("one too many: %s %s", response.Status, text)
		}
	}
	conn, err := net.Dial("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(conn, "GET /v1/agent HTTP/1.1\r\nHost: d\r\n\r\n")
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%v %v", response, err)
	}
}
