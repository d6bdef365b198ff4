package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// reborn returns a hall whose former life elected this process in term 3, and then died. change may alter what
// that life has recorded of the process.
func reborn(t *testing.T, change func(*record.Program)) *hall {
	t.Helper()
	h := hosts(t, func(s *Server) { s.Clock = boottime.Now })
	var program record.Program
	settings := actors.Config{Settings: actors.Settings{Priority: 100}, NewID: func() string { h.ids++; return fmt.Sprint("k", h.ids) },
		Record: func(_ election.Name, p record.Program) { program = p }}
	h.registry = actors.New(settings)
	conn, lines, _ := h.stand(t)
	h.with(func(r *actors.Registry) { r.Lead(0, "payments", 3, 1000, nil, nil) })
	line(t, lines)
	if program.Started == 0 || program.Sockets[0] == 0 {
		t.Fatalf("on record is %+v", program)
	}
	if change != nil {
		change(&program)
	}
	settings.Past = []actors.Past{{Program: program, Authority: election.Authority{
		Election: "payments", Highest: 3, Term: 3, Until: 1000, Priority: 100}}}
	h.with(func(*actors.Registry) { h.registry = actors.New(settings) })
	conn.Close()
	h.expect(t, "end k1") // the server has not changed, and still reports this; the new registry does not know the candidacy
	return h
}

func TestAProgramResumesItsCampaignOnAnotherConnection(t *testing.T) {
	h := reborn(t, nil)
	conn, response, lines := h.post(t, "/v1/campaigns/k1/resume", `{"term":3,"meta":"me"}`)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(response.Status)
	}
	if e := line(t, lines); e.Type != "renewed" || e.Term != 3 || e.ValidUntilBoottimeNS != 1000 || e.Campaign != "k1" || e.Election != "payments" {
		t.Errorf("got %+v", e)
	}
	if list := h.Campaigns(); len(list) != 1 || list[0].Meta != "me" || list[0].Term != 3 {
		t.Errorf("listed as %+v", list)
	}
	h.with(func(r *actors.Registry) { r.Prolong("payments", 3, 2000) })
	if e := line(t, lines); e.Type != "renewed" || e.ValidUntilBoottimeNS != 2000 {
		t.Errorf("got %+v", e)
	}
	conn.Close()
	h.expect(t, "end k1")
}

func TestAProgramThatMayNotResumeIsToldWhyAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		id, body, code string
		status         int
		change         func(*record.Program)
	}{
		"another ID":      {id: "k2", body: `{"term":3}`, status: http.StatusNotFound, code: api.CodeNotFound},
		"a term to come":  {body: `{"term":4}`, status: http.StatusConflict, code: api.CodeNotResumable},
		"no term":         {body: ``, status: http.StatusConflict, code: api.CodeNotResumable},
		"a negative term": {body: `{"term":-1}`, status: http.StatusBadRequest, code: api.CodeBadRequest},
		"no JSON":         {body: `term`, status: http.StatusBadRequest, code: api.CodeBadRequest},
		"a long word":     {body: `{"term":3,"meta":"` + strings.Repeat("x", 300) + `"}`, status: http.StatusBadRequest, code: api.CodeBadRequest},
		"another process": {body: `{"term":3}`, status: http.StatusForbidden, code: api.CodeForbidden, change: func(p *record.Program) { p.PID++ }},
		"its PID again":   {body: `{"term":3}`, status: http.StatusForbidden, code: api.CodeForbidden, change: func(p *record.Program) { p.Started-- }},
		"another user":    {body: `{"term":3}`, status: http.StatusForbidden, code: api.CodeForbidden, change: func(p *record.Program) { p.UID++ }},
		"after a receipt": {body: `{"term":3}`, status: http.StatusNotFound, code: api.CodeNotFound, change: func(p *record.Program) { p.Stopped = 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			h := reborn(t, c.change)
			if c.id == "" {
				c.id = "k1"
			}
			_, response, body := h.post(t, "/v1/campaigns/"+c.id+"/resume", c.body)
			var e api.Error
			if err := json.NewDecoder(body).Decode(&e); err != nil || response.StatusCode != c.status || e.Err.Code != c.code {
				t.Errorf("%s, %+v, %v", response.Status, e, err)
			}
			if c.status != http.StatusBadRequest && !strings.Contains(e.Err.Message, "stop acting") {
				t.Errorf("it says %q, and not what to do", e.Err.Message)
			}
		})
	}
}

// If a candidacy had two connections, the end of one of them would withdraw the candidacy.
func TestACampaignIsResumedOnce(t *testing.T) {
	h := reborn(t, nil)
	_, _, lines := h.post(t, "/v1/campaigns/k1/resume", `{"term":3}`)
	line(t, lines)
	if _, response, _ := h.post(t, "/v1/campaigns/k1/resume", `{"term":3}`); response.StatusCode != http.StatusConflict {
		t.Error(response.Status)
	}
	h.with(func(r *actors.Registry) { r.Prolong("payments", 3, 2000) })
	if e := line(t, lines); e.ValidUntilBoottimeNS != 2000 {
		t.Errorf("the first one got %+v", e)
	}
}
