package hook_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/testbed/executable"
)

// file makes an executable file in a separate directory.
func file(t *testing.T, mode, dirMode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "script")
	if err := executable.Write(path, []byte("#!/bin/sh\n")); err != nil {
		t.Fatal(err)
	}
	for p, m := range map[string]os.FileMode{path: mode, dir: dirMode} { // chmod, since the umask limits the mode of a new file
		if err := os.Chmod(p, m); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestWhatOthersCanWriteIsRefused(t *testing.T) {
	uid := os.Geteuid()
	good := file(t, 0o755, 0o755)
	open := file(t, 0o757, 0o755)
	inOpen := file(t, 0o755, 0o777)
	inSticky := file(t, 0o755, 0o777|os.ModeSticky)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(inOpen, link); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	// up/.. is the parent of the directory that the link up leads to, not of the link.
	up := filepath.Join(t.TempDir(), "up")
	if err := os.Mkdir(filepath.Join(filepath.Dir(inOpen), "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(filepath.Dir(inOpen), "below"), up); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(up), "script"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, says string }{
		{good, ""},
		{good + " leading", ""},
		{inSticky, ""},
		{open, "can be written by anybody"},
		{inOpen, "can be written by anybody"},
		{link, "can be written by anybody"},
		{loop, "too many symbolic links"},
		{up + "/../script", "can be written by anybody"},
		{"/bin/sh " + open, "can be written by anybody"},
		{"/usr/bin/env A=1 " + open, "can be written by anybody"},
		{"/bin/some --run=" + open, "can be written by anybody"},
		{"/usr/bin/env PATH=/bin:" + filepath.Dir(inOpen) + " script", "can be written by anybody"},
		{"exec " + good, "nobody can check"},
		{"", ""},
	} {
		err := hook.Check(c.command, uid)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v, want %q", c.command, err, c.says)
		}
	}
	if uid == 0 {
		if err := os.Chown(good, 12345, 0); err != nil {
			t.Fatal(err)
		}
		if err := hook.Check(good, 0); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
			t.Errorf("another user's script: %v", err)
		}
		if err := hook.Check(good, 12345); err != nil {
			t.Errorf("the user's own script: %v", err)
		}
	}
}

// Others could create the missing file between the check and the run.
func TestWhatOthersCanCreateIsRefused(t *testing.T) {
	uid := os.Geteuid()
	good := filepath.Dir(file(t, 0o755, 0o755))
	open := filepath.Dir(file(t, 0o755, 0o777))
	sticky := filepath.Dir(file(t, 0o755, 0o777|os.ModeSticky))
	dangling := filepath.Join(good, "dangling")
	if err := os.Symlink(sticky+"/nothing", dangling); err != nil {
		t.Fatal(err)
	}
	const writable, creatable = "can be written by anybody", "others could create it in"
	for _, c := range []struct{ command, says string }{
		{good + "/nothing", ""},
		{good + "/no/thing", ""},
		{open + "/nothing", writable},
		{open + "/no/thing", writable},
		{"/usr/bin/logger -f " + open + "/nothing", writable},
		{sticky + "/nothing", creatable},
		{sticky + "/no/thing", creatable},
		{sticky + "/no/../thing", creatable},
		{dangling, creatable},
		// These files are not run.
		{sticky + "/script", ""},
		{"/usr/bin/flock -n " + sticky + "/lock /bin/true", ""},
	} {
		err := hook.Check(c.command, uid)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v, want %q", c.command, err, c.says)
		}
	}
}

// Root may only run a program's path with arguments.
func TestWhatOnlyTheShellUnderstands(t *testing.T) {
	for command, line := range map[string]bool{
		"": false, "/usr/local/libexec/hook": false, "/usr/local/libexec/hook --up eth0 10.0.0.1/24": false,
		"hook": true, "./hook": true, "/bin/sh -c 'x'": true, "/opt/hook $DOYEN_EVENT": true, "/opt/a; /opt/b": true, "/opt/a > /x": true, "/opt/a\n/opt/b": true, "A=1 /opt/a": true,
	} {
		if err := hook.Check(command, 0); errors.Is(err, hook.ErrShellLine) != line {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestAMissingProgramIsFound(t *testing.T) {
	good := file(t, 0o755, 0o755)
	for command, want := range map[string]string{
		good + " x": "", good + "x": "does not exist", filepath.Dir(good): "is a directory", file(t, 0o644, 0o755): "is not executable",
		"cat /dev/null": "", "test -e x": "", ": x": "", "there-is-no-such-program x": "there is no program there-is-no-such-program", "there-is-none | cat": "", "A=1 none": "",
	} {
		if err := hook.Missing(command); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", command, err, want)
		}
	}
}

// Before each run the files are checked again.
func TestARefusedRunIsLoggedAndGivesItsReceipt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: only root's commands are checked")
	}
	path := file(t, 0o755, 0o755)
	r, log := start(t, path, time.Minute)
	await(t, "the first run", tell(r, hook.Event{Election: "default", Event: election.NoLeader}))
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	await(t, "the second run", tell(r, hook.Event{Election: "default", Event: election.NoLeader}))
	if !strings.Contains(log.String(), "refuse to run hook") || !strings.Contains(log.String(), "chmod go-w") {
		t.Errorf("the log says %q", log)
	}
}

func TestAnElectionsOwnCommandIsRunInThePlaceOfTheOneForOthers(t *testing.T) {
	dir := t.TempDir()
	c := hook.Commands{Default: executable.Script(t, "cat > "+dir+"/default"), Others: executable.Script(t, "cat > "+dir+"/others"), Limit: time.Minute,
		Of: map[election.Name]string{"payments": executable.Script(t, "cat > "+dir+"/own"), "cron": "x"}}
	r := hook.New(c, pool(), slog.New(slog.DiscardHandler))
	defer r.Close(t.Context())
	change := api.Change{Type: api.ChangeLeader, Election: "payments", Term: 7, Leader: &api.Leader{Name: "b"}, Reason: "elected"}
	for name, file := range map[election.Name]string{"payments": "own", "default": "default", "report": "others"} {
		await(t, "a run", tell(r, hook.Event{Election: name, Event: election.Following, Change: change}))
		text, err := os.ReadFile(filepath.Join(dir, file))
		var got api.Change
		if err != nil || json.Unmarshal(text, &got) != nil || got.Term != 7 || got.Leader.Name != "b" || !strings.HasSuffix(string(text), "}\n") {
			t.Errorf("%s read %q, %v", file, text, err)
		}
	}
}

// Elections that the configuration does not name run nothing, unless it has a command for all others: any user
// that may be a candidate can create elections.
func TestWhichElectionsRunSomething(t *testing.T) {
	few := hook.Commands{Default: "x", Of: map[election.Name]string{"payments": "x", "cron": "x"}}
	all := hook.Commands{Others: "x"}
	for name, want := range map[election.Name][2]bool{"default": {true, false}, "cron": {true, true}, "junk": {false, true}} {
		if got := [2]bool{few.For(name) != "", all.For(name) != ""}; got != want {
			t.Errorf("%s: runs something: %v, want %v", name, got, want)
		}
	}
}
