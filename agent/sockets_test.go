package agent_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent"
)

func TestWhoMayConnectIsValidated(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*agent.Config)
		says   string
	}{
		{func(c *agent.Config) { c.SocketMode = "0640" }, `--socket-mode: unknown mode "0640"; use 0600, 0660 or 0666`},
		{func(c *agent.Config) { c.SocketMode = "" }, `--socket-mode: unknown mode ""`},
		{func(c *agent.Config) { c.ReadSocketMode = "660" }, `--read-socket-mode: unknown mode "660"`},
		{func(c *agent.Config) { c.SocketGroup = "nosuch" }, `--socket-group: group "nosuch" does not exist on this host; create it`},
		{func(c *agent.Config) { c.ReadSocket, c.ReadSocketGroup = dir+"/r", "nosuch" }, `--read-socket-group: group "nosuch"`},
		{func(c *agent.Config) { c.ReadSocketGroup = "0" }, `--read-socket-group: there is no --read-socket`},
		{func(c *agent.Config) { c.ReadSocket = c.Socket }, "is also the path of --socket"},
		{func(c *agent.Config) { c.ReadSocket = dir + "/" + strings.Repeat("x", 108) }, "--read-socket: the path has"},
		{func(c *agent.Config) { c.Socket, c.ReadSocket, c.ReadSocketGroup = dir+"/s", dir+"/r", "1" }, "only one group can enter it; put it into another directory"},
		{func(c *agent.Config) { c.Socket, c.ReadSocket, c.SocketGroup = "/nosuch/s", "/nosuch/r", "1" }, "only one group can enter it"},
		{func(c *agent.Config) {
			c.Socket, c.ReadSocket, c.SocketGroup, c.ReadSocketGroup = dir+"/s", dir+"/r", "1", "1"
		}, ""},
		{func(c *agent.Config) { c.Socket, c.ReadSocket, c.ReadSocketGroup = "/run/s", "/run/r", "1" }, ""},
	} {
		_, err := resolved(t, c.change)
		if _, bad := errors.AsType[*agent.ConfigError](err); bad != (c.says != "") || bad && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

// What the start would end with, --check-config says before.
func TestAGroupThatCannotGetTheSocketIsAMistake(t *testing.T) {
	c, err := resolved(t, func(c *agent.Config) {
		c.Socket = filepath.Join(t.TempDir(), "d", "s")
		if err := os.Mkdir(filepath.Dir(c.Socket), 0o700); err != nil {
			t.Fatal(err)
		}
		c.SocketGroup = "4001"
	})
	if err != nil {
		t.Fatal(err)
	}
	wrong := c.Mistakes()
	if len(wrong) != 1 || !strings.HasPrefix(wrong[0].Error(), "--socket-group: "+filepath.Dir(c.Socket)+" can't be entered by the group 4001") {
		t.Errorf("%v", wrong)
	}
	if err := agent.Run(t.Context(), c, agent.Process{}, newStderr("")); err == nil || err.Error() != wrong[0].Error() {
		t.Errorf("the start says %v", err)
	}
}

// A reload names what is about the sockets as needing a restart, and changes nothing of it.
func TestTheReadSocketAnswersAndChangesAtARestart(t *testing.T) {
	var path string
	r := newReloading(t, func(c *agent.Config) {
		path = filepath.Join(filepath.Dir(c.Socket), "r")
		c.ReadSocket, c.ReadSocketMode = path, "0600"
	})
	untilAnswer(r, "/v1/elections/default", isLed)
	reading := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	defer reading.CloseIdleConnections()
	asked := func(method, call string) int {
		t.Helper()
		request, err := http.NewRequest(method, "http://d"+call, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := reading.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if got := []int{asked("GET", "/v1/elections/default"), asked("POST", "/v1/elections/default/resign"), asked("POST", "/v1/reload")}; !slices.Equal(got, []int{200, 403, 403}) {
		t.Errorf("the read-only socket answers %v", got)
	}
	r.c.SocketMode, r.c.SocketGroup, r.c.ReadSocket, r.c.ReadSocketMode, r.c.HTTPAPI = "0666", "0", "", "0660", true
	r.want("", "socket-mode socket-group read-socket read-socket-mode http-api")
	for of, want := range map[string]os.FileMode{path: 0o600, r.c.Socket: 0o660} {
		if info, err := os.Stat(of); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", of, info.Mode(), err, want)
		}
	}
	if asked("GET", "/v1/agent") != 200 {
		t.Error("the read-only socket is gone")
	}
}
