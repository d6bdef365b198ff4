package settings_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/settings"
)

func TestWhoMayConnectIsValidated(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*settings.Config)
		says   string
	}{
		{func(c *settings.Config) { c.SocketMode = "0640" }, `--socket-mode: unknown mode "0640"; use 0600, 0660 or 0666`},
		{func(c *settings.Config) { c.SocketMode = "" }, `--socket-mode: unknown mode ""`},
		{func(c *settings.Config) { c.ReadSocketMode = "660" }, `--read-socket-mode: unknown mode "660"`},
		{func(c *settings.Config) { c.SocketGroup = "nosuch" }, `--socket-group: group "nosuch" does not exist on this host; create it`},
		{func(c *settings.Config) { c.ReadSocket, c.ReadSocketGroup = dir+"/r", "nosuch" }, `--read-socket-group: group "nosuch"`},
		{func(c *settings.Config) { c.ReadSocketGroup = "0" }, `--read-socket-group: there is no --read-socket`},
		{func(c *settings.Config) { c.ReadSocket = c.Socket }, "is also the path of --socket"},
		{func(c *settings.Config) { c.ReadSocket = dir + "/" + strings.Repeat("x", 108) }, "--read-socket: the path has"},
		{func(c *settings.Config) { c.Socket, c.ReadSocket, c.ReadSocketGroup = dir+"/s", dir+"/r", "1" }, "only one group can enter it; put it into another directory"},
		{func(c *settings.Config) { c.Socket, c.ReadSocket, c.SocketGroup = "/nosuch/s", "/nosuch/r", "1" }, "only one group can enter it"},
		{func(c *settings.Config) {
			c.Socket, c.ReadSocket, c.SocketGroup, c.ReadSocketGroup = dir+"/s", dir+"/r", "1", "1"
		}, ""},
		{func(c *settings.Config) { c.Socket, c.ReadSocket, c.ReadSocketGroup = "/run/s", "/run/r", "1" }, ""},
	} {
		_, err := resolved(t, c.change)
		if _, bad := errors.AsType[*settings.Error](err); bad != (c.says != "") || bad && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}
