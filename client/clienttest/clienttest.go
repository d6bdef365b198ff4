// Package clienttest replaces an agent in tests of programs that campaign: a test
// decides when its candidates are elected, renewed and revoked.
//
// It guarantees the form of requests and answers, as in the socket API, but not their meaning. There
// are no voters behind it, and no lease except the one that the test sends.
package clienttest

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

const Patience = 30 * time.Second

type Agent struct {
	t      testing.TB
	path   string
	stood  chan *Campaign
	again  chan *Campaign // receives each campaign that a program resumes
	mu     sync.Mutex
	all    map[string]*Campaign
	next   int
	lives  int // how often the agent was stopped
	refuse *api.ErrorDetail
	status int
	server *http.Server
	done   chan struct{}
	words  words
}

func Start(t testing.TB) *Agent {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "doyen") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &Agent{t: t, path: filepath.Join(dir, "s"), stood: make(chan *Campaign, 64), again: make(chan *Campaign, 64), all: map[string]*Campaign{}}
	a.words.start()
	a.Listen()
	t.Cleanup(a.Stop)
	return a
}

func (a *Agent) Socket() string { return a.path }

// Listen starts to answer. After Stop, it starts again.
func (a *Agent) Listen() {
	a.t.Helper()
	os.Remove(a.path)
	listener, err := net.Listen("unix", a.path)
	if err != nil {
		a.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/elections/{name}/campaign", a.campaign)
	mux.HandleFunc("POST /v1/campaigns/{id}/resume", a.resume)
	mux.HandleFunc("POST /v1/campaigns/{id}/stopped", a.stopped)
	mux.HandleFunc("POST /v1/campaigns/{id}/companion", a.report)
	a.serveWords(mux)
	a.server, a.done = &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}, make(chan struct{})
	go func(server *http.Server, done chan struct{}) {
		defer close(done)
		server.Serve(listener)
	}(a.server, a.done)
}

// Stop closes every connection and removes the socket. Programs can resume after the next Listen.
func (a *Agent) Stop() {
	a.mu.Lock()
	a.lives++
	a.mu.Unlock()
	a.server.Close()
	<-a.done
}

// Refuse makes the agent refuse every further campaign and report, until it is called with a status of 0.
func (a *Agent) Refuse(status int, code, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.refuse = status, &api.ErrorDetail{Code: code, Message: message}
}

func (a *Agent) Stood() *Campaign {
	a.t.Helper()
	return a.await(a.stood, "no candidate came")
}

func (a *Agent) await(from <-chan *Campaign, otherwise string) *Campaign {
	a.t.Helper()
	select {
	case c := <-from:
		return c
	case <-time.After(Patience):
		a.t.Fatal(otherwise)
		return nil
	}
}

func (a *Agent) campaign(w http.ResponseWriter, r *http.Request) {
	c := newCampaign(a, "", r.PathValue("name"))
	defer close(c.gone)
	if err := json.NewDecoder(r.Body).Decode(&c.Request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.next++
	c.ID = "c" + strconv.Itoa(a.next)
	a.all[c.ID], c.life = c, a.lives
	a.mu.Unlock()
	if a.refused(w) {
		return
	}
	c.Say(api.CampaignEvent{Type: api.CampaignCandidate})
	a.stood <- c
	c.write(w, r)
}

// resume goes on with a campaign that started before Stop.
func (a *Agent) resume(w http.ResponseWriter, r *http.Request) {
	var resumed api.ResumeRequest
	old := a.about(w, r, &resumed)
	if old == nil {
		return
	}
	c := newCampaign(a, old.ID, old.Election)
	c.Request, c.Resumed = old.Request, resumed
	c.term.Store(old.term.Load())
	defer close(c.gone)
	a.mu.Lock()
	lost := old.life < a.lives
	if lost {
		a.all[c.ID], c.life = c, a.lives
	}
	a.mu.Unlock()
	if !lost { // the campaign did not lose its connection by Stop, so it can't be resumed
		unknown(w)
		return
	}
	a.again <- c
	c.write(w, r)
}

// about reads the request for a campaign. If the campaign or the body is not valid, it answers and returns nil.
func (a *Agent) about(w http.ResponseWriter, r *http.Request, body any) *Campaign {
	a.mu.Lock()
	c := a.all[r.PathValue("id")]
	a.mu.Unlock()
	switch err := json.NewDecoder(r.Body).Decode(body); {
	case c == nil:
		unknown(w)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	return c
}

func (a *Agent) Resumed() *Campaign {
	a.t.Helper()
	return a.await(a.again, "no program resumed")
}

func (c *Campaign) write(w http.ResponseWriter, r *http.Request) {
	encoder, flusher := json.NewEncoder(w), w.(http.Flusher)
	for {
		select {
		case line := <-c.lines:
			if encoder.Encode(line) != nil {
				return
			}
			flusher.Flush()
		case <-c.cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (a *Agent) stopped(w http.ResponseWriter, r *http.Request) {
	var stopped api.StoppedRequest
	if c := a.about(w, r, &stopped); c != nil {
		c.term.Store(0)
		c.receipts <- stopped
		if held := c.held.Load(); held != nil {
			<-*held
		}
		json.NewEncoder(w).Encode(api.Outcome{Done: true})
	}
}

func (a *Agent) report(w http.ResponseWriter, r *http.Request) {
	var reports api.Companion
	if c := a.about(w, r, &reports); c != nil {
		if c.reports <- reports; a.refused(w) {
			return
		}
		json.NewEncoder(w).Encode(api.Outcome{Done: true})
	}
}

// refused answers with a refusal, if the agent is to refuse.
func (a *Agent) refused(w http.ResponseWriter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status != 0 {
		w.WriteHeader(a.status)
		json.NewEncoder(w).Encode(api.Error{Err: *a.refuse})
	}
	return a.status != 0
}

func unknown(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	json.NewEncoder(w).Encode(api.Error{Err: api.ErrorDetail{Code: api.CodeNotFound, Message: "no campaign on this host has this ID; it may have ended"}})
}

func (a *Agent) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.all)
}

type Campaign struct {
	ID, Election string
	Request      api.CampaignRequest
	Resumed      api.ResumeRequest // only for a resumed campaign; else zero

	agent    *Agent
	term     atomic.Uint64 // the term under which the program may act, or must still stop acting; 0: none
	life     int
	lines    chan api.CampaignEvent
	cut      chan struct{}
	gone     chan struct{}
	receipts chan api.StoppedRequest
	reports  chan api.Companion
	held     atomic.Pointer[chan struct{}] // until it is closed, receipts are not answered; nil: they are answered at once
}

func newCampaign(a *Agent, id, election string) *Campaign {
	return &Campaign{agent: a, ID: id, Election: election, lines: make(chan api.CampaignEvent, 64),
		cut: make(chan struct{}), gone: make(chan struct{}), receipts: make(chan api.StoppedRequest, 64), reports: make(chan api.Companion, 64)}
}

// HoldReceipts delays the answers to receipts until release is called.
func (c *Campaign) HoldReceipts() (release func()) {
	held := make(chan struct{})
	c.held.Store(&held)
	return func() { close(held) }
}

func (c *Campaign) Say(e api.CampaignEvent) {
	if e.Campaign = c.ID; c.Election != api.EveryElection { // a companion's lines carry their own election
		e.Election = c.Election
	}
	c.lines <- e
}

// Elect notifies the candidate that it leads, with a lease of that length and with the election's word, and
// returns the lease's deadline.
func (c *Campaign) Elect(term uint64, lease time.Duration) int64 {
	return c.until(api.CampaignElected, term, lease)
}

func (c *Campaign) Renew(term uint64, lease time.Duration) int64 {
	return c.until(api.CampaignRenewed, term, lease)
}

func (c *Campaign) until(kind string, term uint64, lease time.Duration) int64 {
	until := alarm.Now() + int64(lease)
	e := api.CampaignEvent{Type: kind, Term: term, ValidUntilBoottimeNS: until, ValidForMS: lease.Milliseconds()}
	if kind == api.CampaignElected {
		e.Word = c.agent.Word(c.Election)
	}
	c.term.Store(term)
	c.Say(e)
	return until
}

func (c *Campaign) Revoke(reason string, in time.Duration) {
	c.Say(api.CampaignEvent{Type: api.CampaignRevoked, Reason: reason, StopByBoottimeNS: alarm.Now() + int64(in), ValidForMS: in.Milliseconds()})
}

// Cut ends the connection from the agent's side.
func (c *Campaign) Cut() { close(c.cut) }

// Gone is closed when the connection has ended.
func (c *Campaign) Gone() <-chan struct{} { return c.gone }

func (c *Campaign) Receipts() <-chan api.StoppedRequest { return c.receipts }

func (c *Campaign) Reports() <-chan api.Companion { return c.reports }
