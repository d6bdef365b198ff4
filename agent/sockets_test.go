package agent_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
)

// --check-config reports what would make the start fail.
func TestAGroupThatCannotGetTheSocketIsAMistake(t *testing.T) {
	c := lone(t)
	if err := os.Mkdir(filepath.Dir(c.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	c.SocketGroup = "4001"
	wrong := c.Mistakes()
	if len(wrong) != 1 || !strings.HasPrefix(wrong[0].Error(), "--socket-group: "+filepath.Dir(c.Socket)+" can't be entered by the group 4001") {
		t.Errorf("%v", wrong)
	}
	if err := agent.Run(t.Context(), c, agent.Process{}, newStderr("")); err == nil || err.Error() != wrong[0].Error() {
		t.Errorf("the start says %v", err)
	}
}

// A reload changes nothing of the sockets. It reports that these settings need a restart.
func TestTheReadSocketAnswersAndChangesAtARestart(t *testing.T) {
	var path string
	r := newReloading(t, func(c *settings.Config) {
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
