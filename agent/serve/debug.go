package serve

import (
	"bytes"
	"net/http"
	"runtime/pprof"
	"slices"
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

// debug answers with one part of a bug report, for administrators. No part has a key in it.
func (d debugging) debug(w http.ResponseWriter, r *http.Request) {
	if err := d.may(r, access.Admin, ""); err != nil {
		refuse(w, err)
		return
	}
	var text bytes.Buffer
	switch part := r.PathValue("part"); {
	case part == "goroutines":
		// The longer form shows the arguments of functions, some of which are keys.
		_ = pprof.Lookup("goroutine").WriteTo(&text, 1)
	case part == "profile":
		if err := d.profile(r, &text); err != nil {
			refuse(w, err)
			return
		}
	case d.Debug[part] != nil:
		text.Write(d.Debug[part]())
	default:
		nothingThere(w, r)
		return
	}
	send(w, http.StatusOK, "application/octet-stream", text.Bytes())
}

// profile collects a CPU profile.
func (d debugging) profile(r *http.Request, to *bytes.Buffer) error {
	limit := profileTime
	if asked := r.URL.Query().Get("seconds"); asked != "" {
		seconds, err := strconv.Atoi(asked)
		if limit = time.Duration(seconds) * time.Second; err != nil || seconds < 1 || limit > maxProfileTime {
			return badRequest(`"seconds" must be 1 to ` + strconv.Itoa(int(maxProfileTime/time.Second)))
		}
	}
	if pprof.StartCPUProfile(to) != nil {
		return refusal(api.CodeBusy, "another CPU profile is being collected: try again in half a minute")
	}
	defer pprof.StopCPUProfile()
	select {
	case <-time.After(limit):
	case <-r.Context().Done():
	}
	return nil
}

// logLevel changes the level of the log for a while.
func (d debugging) logLevel(c *call[api.LogLevelRequest]) (any, error) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.body.Level) {
		return nil, badRequest(`"level" must be debug, info, warn or error`)
	}
	if c.body.ForMS < minLogLevel.Milliseconds() || c.body.ForMS > maxLogLevel.Milliseconds() {
		return nil, badRequest(`"for_ms" must be 1000 (a second) to 86400000 (24 hours)`)
	}
	limit := time.Duration(c.body.ForMS) * time.Millisecond
	until := time.Now().UTC().Add(limit).Truncate(time.Second)
	return api.LogLevel{Level: c.body.Level, Until: until, Then: d.LogLevel(c.body.Level, limit)}, nil
}
