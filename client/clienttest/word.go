package clienttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/doyen-election/doyen/api"
)

// words has the words of elections and their leaders. mu guards all fields, and nothing waits under it.
type words struct {
	mu      sync.Mutex
	seq     uint64
	of      map[string]*api.Word
	leaders map[string]string // by election: the name of an agent, or Here for another program of this host
	written chan api.WordRequest
	held    chan struct{} // until it is closed, writes are not answered; nil: they are answered at once
	lost    int           // how many of the next writes are carried out without an answer
	status  int
	refuse  api.ErrorDetail
}

// Here is the name of the fake agent.
const Here = "here"

func (w *words) start() {
	w.of, w.leaders, w.written = map[string]*api.Word{}, map[string]string{}, make(chan api.WordRequest, 64)
}

func (a *Agent) serveWords(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/campaigns/{id}/word", a.write)
	mux.HandleFunc("GET /v1/elections/{name}/word", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		json.NewEncoder(w).Encode(api.ElectionWord{Election: name, Word: a.Word(name), Authority: api.AuthorityLease})
	})
	mux.HandleFunc("GET /v1/elections/{name}", a.election)
	mux.HandleFunc("GET /v1/campaigns", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(api.Campaigns{Campaigns: a.campaigns()})
	})
}

// Word is the election's word; nil: it has none.
func (a *Agent) Word(election string) *api.Word {
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	return a.words.of[election]
}

// SetWord replaces the word, as if a former leader or another process of the program had written it.
func (a *Agent) SetWord(election string, term uint64, text string) {
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	a.words.set(election, term, text)
}

func (w *words) set(election string, term uint64, text string) api.WordID {
	w.seq++
	id := api.WordID{Term: term, Seq: w.seq}
	w.of[election] = &api.Word{WordID: id, Text: text}
	return id
}

// Writes receives each write that programs send, before the word is changed.
func (a *Agent) Writes() <-chan api.WordRequest { return a.words.written }

// HoldWrites delays further writes and their answers until release is called.
func (a *Agent) HoldWrites() (release func()) {
	held := make(chan struct{})
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	a.words.held = held
	return func() {
		a.words.mu.Lock()
		defer a.words.mu.Unlock()
		a.words.held = nil
		close(held)
	}
}

// LoseAnswers makes the agent carry out the next n writes and close their connections without an answer.
func (a *Agent) LoseAnswers(n int) {
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	a.words.lost = n
}

// RefuseWrites makes the agent refuse further writes, until it is called with a status of 0.
func (a *Agent) RefuseWrites(status int, code, message string) {
	a.RefuseWritesWith(status, api.ErrorDetail{Code: code, Message: message})
}

// RefuseWritesWith is RefuseWrites for a refusal that has a word.
func (a *Agent) RefuseWritesWith(status int, refusal api.ErrorDetail) {
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	a.words.status, a.words.refuse = status, refusal
}

// write carries out a write under the conditions of an agent: the campaign may act under the term, and the
// present word is the one that is to be replaced.
func (a *Agent) write(w http.ResponseWriter, r *http.Request) {
	var q api.WordRequest
	c := a.about(w, r, &q)
	if c == nil {
		return
	}
	s := &a.words
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if s.written <- q; held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var is api.WordID
	if word := s.of[c.Election]; word != nil {
		is = word.WordID
	}
	refusal, status := s.refuse, s.status
	switch term := c.term.Load(); {
	case status != 0:
	case term == 0 || q.Term != term:
		status, refusal = http.StatusConflict, api.ErrorDetail{Code: api.CodeNotLeader, Message: fmt.Sprintf("this campaign leads in term %d", term)}
	case q.If != is:
		status, refusal = http.StatusConflict, api.ErrorDetail{Code: api.CodeWordChanged, Message: "the word is another one", Word: s.of[c.Election]}
	default:
		id := s.set(c.Election, q.Term, q.Text)
		if s.lost > 0 {
			s.lost--
			panic(http.ErrAbortHandler)
		}
		json.NewEncoder(w).Encode(id)
		return
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(api.Error{Err: refusal})
}

// Leads makes this agent report that the named agent leads the election. Here names another program of this
// host. With an empty name, only a program that Elect elected leads.
func (a *Agent) Leads(election, name string) {
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	a.words.leaders[election] = name
}

func (a *Agent) election(w http.ResponseWriter, r *http.Request) {
	e := api.Election{Election: r.PathValue("name"), State: api.StateElecting}
	a.words.mu.Lock()
	leader := a.words.leaders[e.Election]
	a.words.mu.Unlock()
	for _, c := range a.campaigns() {
		if c.Election == e.Election && c.Term > 0 {
			leader = cmp.Or(leader, Here)
		}
	}
	if leader != "" {
		e.Leader, e.IsLeader = &api.Leader{Name: leader, ID: leader}, leader == Here
	}
	json.NewEncoder(w).Encode(e)
}

// campaigns are the campaigns of this host. An election that Leads gave to Here has a campaign without an
// ID, as if another user's program led it.
func (a *Agent) campaigns() (all []api.Campaign) {
	a.mu.Lock()
	for _, c := range a.all {
		select {
		case <-c.gone:
		default:
			all = append(all, api.Campaign{Campaign: c.ID, Election: c.Election, Term: c.term.Load()})
		}
	}
	a.mu.Unlock()
	a.words.mu.Lock()
	defer a.words.mu.Unlock()
	for election, name := range a.words.leaders {
		if name == Here {
			all = append(all, api.Campaign{Election: election, Term: 1})
		}
	}
	return all
}
