package serve_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

var calls = []string{
	"/v1/elections/default/resign", "/v1/elections/default/transfer", "/v1/elections/default/campaign", "/v1/elections/default/allow",
	"/v1/campaigns/x/resume", "/v1/campaigns/x/stopped", "/v1/voters", "/v1/settings", "/v1/keys", "/v1/drain", "/v1/leave", "/v1/restart", "/v1/reload",
}

// On the read-only socket nobody changes anything: neither root, nor the agent's user, nor others.
func TestOnTheReadOnlySocketNobodyChangesAnything(t *testing.T) {
	programs, k := &stage{}, &keys{}
	a := stand(t, func(c *serve.Config) {
		c.Campaigns, c.Keyring = programs, k
		c.Access = policy(t, access.Config{}, access.Owner{UID: 4000, GID: 4001})
	})
	a.on = func(in election.Input) (election.Reply, error) {
		t.Errorf("%T reached the agent", in)
		return election.Reply{}, nil
	}
	reading := &agent{path: a.path + "-read"}
	for _, user := range []as{{uid: 0}, {uid: 4000, gid: 4001}, {uid: 4100, gid: 4001}, {uid: 4200, gid: 4200}} {
		reader, other := reading.as(t, user), a.as(t, user)
		for _, path := range calls {
			if status, text := reader.do(t, "POST", path, `{"to":"b","on":true}`); status != 403 || !strings.Contains(text, "--socket "+a.path+`"`) {
				t.Errorf("user %d, %s: %d %s", user.uid, path, status, text)
			}
		}
		for _, from := range []*agent{reader, other} {
			if status, text := from.do(t, "GET", "/v1/voters", ""); status != 200 {
				t.Errorf("user %d reads at %s: %d %s", user.uid, from.path, status, text)
			}
		}
		if user.uid == 4200 {
			if status, text := other.do(t, "POST", "/v1/drain", `{"on":true}`); status != 403 || !strings.Contains(text, `"admin\"`) {
				t.Errorf("at the agent's socket: %d %s", status, text)
			}
		}
		f := reader.watch(t, "")
		if c := f.next(); c.Type != "snapshot" {
			t.Errorf("user %d watches %+v", user.uid, c)
		}
		a.hub.Publish(api.Change{Election: "default", Type: api.ChangeNoLeader})
		if c := f.next(); c.Type != "no_leader" {
			t.Errorf("user %d watches %+v", user.uid, c)
		}
	}
	if len(programs.asked) > 0 || k.asked.Rotate {
		t.Errorf("candidacies %v, keys %+v", programs.asked, k.asked)
	}
}

// Whether a user can connect depends only on the groups and modes of the directory and the socket.
func TestASocketIsSharedWithAGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as another user; CI runs this as root")
	}
	base, err := os.MkdirTemp("", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir    os.FileMode // the mode of a directory that exists already; 0: the agent makes it
		group  int         // that directory's group
		to     socket.Sharing
		passes map[uint32]bool
	}{
		"a directory of its own":      {0, 0, socket.Sharing{Mode: 0o660, Group: 4001}, map[uint32]bool{4001: true, 4002: false}},
		"a directory for its group":   {0o750, 0, socket.Sharing{Mode: 0o660, Group: 4001}, map[uint32]bool{4001: true, 4002: false}},
		"with another mode":           {0o750, 0, socket.Sharing{Mode: 0o600, Group: 4001}, map[uint32]bool{4001: false}},
		"for everybody":               {0o755, 0, socket.Sharing{Mode: 0o666, Group: -1}, map[uint32]bool{4001: true, 4002: true}},
		"in a directory for everyone": {0o755, 0, socket.Sharing{Mode: 0o660, Group: 4001}, map[uint32]bool{4001: true, 4002: false}},
		"by the directory's group":    {0o750 | os.ModeSetgid, 4001, socket.Sharing{Mode: 0o660, Group: -1}, map[uint32]bool{4001: true, 4002: false}},
	} {
		path := filepath.Join(base, strings.ReplaceAll(name, " ", "-"), "s")
		if dir := filepath.Dir(path); c.dir != 0 {
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 0, c.group), os.Chmod(dir, c.dir)); err != nil {
				t.Fatal(err)
			}
		}
		l, err := socket.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := socket.Share(path, c.to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for group, want := range c.passes {
			conn, err := as{uid: 4100, gid: group}.dial(path)
			if (err == nil) != want || err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: a member of %d connects: %v", name, group, err)
			}
			if err == nil {
				conn.Close()
			}
		}
		l.Close()
	}
}

func TestASocketIsNotSharedWhereThatWouldBeNoUse(t *testing.T) {
	to := socket.Sharing{Mode: 0o660, Group: 4001}
	for mode, says := range map[os.FileMode]string{
		0o700: "can't be entered by the group 4001 (its mode is 0700, its group 0); run: chgrp 4001 ",
		0o770: "can't be entered by the group 4001 (its mode is 0770", // the group could put its own socket there
		0o750: "",
		0o755: "",
	} {
		path := filepath.Join(t.TempDir(), "d", "s")
		dir := filepath.Dir(path)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, -1, 0), os.Chmod(dir, mode)); err != nil {
			t.Skipf("needs root, whose group is 0; CI runs this as root: %v", err)
		}
		err := to.Possible(path)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%04o: %v", mode, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Sys().(*syscall.Stat_t).Gid != 0 {
			t.Errorf("%04o: it was given away: %v", mode, err)
		}
	}
}
