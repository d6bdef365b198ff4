package serve

import (
	"bytes"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/api"
)

const (
	profileTime    = 5 * time.Second
	maxProfileTime = 30 * time.Second
	minLogLevel    = time.Second
	maxLogLevel    = 24 * time.Hour
)

type debugging struct{ *Config }

// debug answers with one part of a bug report, for administrators. None has a key in it.
func (d debugging) debug(w http.ResponseWriter, r *http.Request) {
	if !d.may(w, r, access.Admin, "") {
		return
	}
	var text bytes.Buffer
	switch part := r.PathValue("part"); {
	case part == "goroutines":
		// The longer form shows the arguments of functions, some of which are keys.
		_ = pprof.Lookup("goroutine").WriteTo(&text, 1)
	case part == "profile":
		if !d.profile(w, r, &text) {
			return
		}
	case d.Debug[part] != nil:
		text.Write(d.Debug[part]())
	default:
		nothingThere(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(text.Len()))
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // a profile took its time
	_, _ = text.WriteTo(w)                                                           // the client may have gone
}

// profile collects a CPU profile. If it can't, it answers and returns false.
func (d debugging) profile(w http.ResponseWriter, r *http.Request, to *bytes.Buffer) bool {
	limit := profileTime
	if asked := r.URL.Query().Get("seconds"); asked != "" {
		seconds, err := strconv.Atoi(asked)
		if limit = time.Duration(seconds) * time.Second; err != nil || seconds < 1 || limit > maxProfileTime {
			badRequest(w, `"seconds" must be 1 to `+strconv.Itoa(int(maxProfileTime/time.Second)))
			return false
		}
	}
	if err := pprof.StartCPUProfile(to); err != nil {
		fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: api.CodeBusy, Message: "another CPU profile is being collected: try again in half a minute"})
		return false
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	select {
	case <-end.C:
	case <-r.Context().Done():
	}
	pprof.StopCPUProfile()
	return true
}

// logLevel changes the level of the log for a while.
func (d debugging) logLevel(w http.ResponseWriter, r *http.Request) {
	var request api.LogLevelRequest
	if !body(w, r, &request) {
		return
	}
	limit := time.Duration(request.ForMS) * time.Millisecond
	switch request.Level {
	case "debug", "info", "warn", "error":
	default:
		badRequest(w, `"level" must be debug, info, warn or error`)
		return
	}
	if request.ForMS < minLogLevel.Milliseconds() || request.ForMS > maxLogLevel.Milliseconds() {
		badRequest(w, `"for_ms" must be 1000 (a second) to 86400000 (24 hours)`)
		return
	}
	until := time.Now().UTC().Add(limit).Truncate(time.Second)
	answer(w, api.LogLevel{Level: request.Level, Until: until, Then: d.LogLevel(request.Level, limit)})
}
