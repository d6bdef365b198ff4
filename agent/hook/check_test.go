package hook_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// script makes a file in a directory of its own.
func script(t *testing.T, mode, dirMode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for p, m := range map[string]os.FileMode{path: mode, dir: dirMode} { // past the umask
		if err := os.Chmod(p, m); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestWhatOthersCanWriteIsRefused(t *testing.T) {
	uid := os.Geteuid()
	good := script(t, 0o755, 0o755)
	open := script(t, 0o757, 0o755)
	inOpen := script(t, 0o755, 0o777)
	inSticky := script(t, 0o755, 0o777|os.ModeSticky)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(inOpen, link); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	// up/.. is where that leads, not the directory that the link lies in.
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
		{inSticky, ""},
		{"exec " + good + " leading >/dev/null 2>&1 &", ""},
		{open, "can be written by anybody"},
		{inOpen, "can be written by anybody"},
		{link, "can be written by anybody"},
		{loop, "too many symbolic links"},
		{"'" + open + "' x", "can be written by anybody"},
		{`true; if [ "$DOYEN_EVENT" = leading ]; then ` + open + "; fi", "can be written by anybody"},
		{"true | " + open, "can be written by anybody"},
		{"A=1 B=2 " + open, "can be written by anybody"},
		{"/bin/sh " + open, "can be written by anybody"},
		{"env A=1 " + open, "can be written by anybody"},
		{". " + open, "can be written by anybody"},
		{"echo $(" + open + ")", "can be written by anybody"},
		{`logger "$DOYEN_LEADER leads"; nothing-of-that-name; "$HOOK"`, ""},
		{"cat " + open + " | sh", "can be written by anybody"},
		{"sh -c '" + open + " now'", "can be written by anybody"},
		{"sh -ec 'true; " + open + "'", "can be written by anybody"},
		{"flock " + good + " " + open, "can be written by anybody"},
		{"flock " + good + " -c '" + open + " x'", "can be written by anybody"},
		{"ionice -c3 nice -n 5 " + open, "can be written by anybody"},
		{"echo x | xargs " + open, "can be written by anybody"},
		{"su -c '" + open + " x' root", "can be written by anybody"},
		{"systemd-run --unit x " + open, "can be written by anybody"},
		{"php " + open, "can be written by anybody"},
		{"sh < " + open, "can be written by anybody"},
		{"sh <<X\n" + open + "\nX", "can be written by anybody"},
		{"eval '" + open + " x'", "can be written by anybody"},
		{"trap '" + open + "' EXIT; true", "can be written by anybody"},
		{"some-program --run=" + open, "can be written by anybody"},
		{"PATH=" + filepath.Dir(inOpen) + ":$PATH script", "can be written by anybody"},
		{filepath.Dir(inOpen) + "/hook-$DOYEN_EVENT", "can be written by anybody"},
		{up + "/../script", "can be written by anybody"},
		{"cd " + filepath.Dir(open) + " && ./script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && d/script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && sh script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && sh -c ./script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && . script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && python3 script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && env A=1 ./script", "it is a relative path"},
		{"cd " + filepath.Dir(open) + " && sh < script", "it is a relative path"},
		{"ip addr add 10.77.0.100/24 dev eth0 </dev/null >>" + open + " 2>" + inOpen, ""}, // output runs nothing
		{"VIP=10.77.0.100/24 DEV=eth0 exec " + good, ""},
		{"curl -fsS http://d/v1/x -o /dev/null; sed s/a/b/ /dev/null", ""},
		{"sh -c 'echo $0' x; sh -s </dev/null; python3 -c 'x=1/2'", ""},
		{"if then", "read the command"},
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

// Between the look and the run, others can create what is not there yet.
func TestWhatOthersCanCreateIsRefused(t *testing.T) {
	uid := os.Geteuid()
	good := filepath.Dir(script(t, 0o755, 0o755))
	open := filepath.Dir(script(t, 0o755, 0o777))
	sticky := filepath.Dir(script(t, 0o755, 0o777|os.ModeSticky))
	dangling := filepath.Join(good, "dangling")
	if err := os.Symlink(sticky+"/nothing", dangling); err != nil {
		t.Fatal(err)
	}
	const writable, creatable, searched = "can be written by anybody", "others could create it in", "others could create a program in it"
	for _, c := range []struct{ command, says string }{
		{good + "/nothing", ""},
		{good + "/no/thing", ""},
		{open + "/nothing", writable},
		{open + "/no/thing", writable},
		{"logger -f " + open + "/nothing", writable},
		{sticky + "/nothing", creatable},
		{sticky + "/no/thing", creatable},
		{sticky + "/no/../thing", creatable},
		{dangling, creatable},
		{sticky + "/hook-$DOYEN_EVENT", searched},
		{"sh " + sticky + "/nothing", creatable},
		{"sh -x " + sticky + "/nothing", creatable},
		{"bash --rcfile " + sticky + "/nothing -i", creatable},
		{"sh -c '" + sticky + "/nothing x'", creatable},
		{"sh < " + sticky + "/nothing", creatable},
		{". " + sticky + "/nothing", creatable},
		{". " + sticky + "/env-$DOYEN_EVENT", searched},
		{"python3 -u " + sticky + "/nothing", creatable},
		{"timeout -k 1 5 " + sticky + "/nothing", creatable},
		{"sudo -u mail " + sticky + "/nothing", creatable},
		{"ip netns exec mail " + sticky + "/nothing", creatable},
		{"flock -w 5 " + sticky + "/lock " + sticky + "/nothing", creatable},
		{"PATH=" + sticky + ":$PATH x", searched},
		{"export PATH=$PATH:" + sticky + "; x", searched},
		{"env PATH=" + sticky + "/nothing x", creatable},
		{"PATH=$PATH:. x", "it is a relative path"},
		{"PATH=$PATH: x", "it is a relative path"},
		{"BASH_ENV=" + sticky + "/nothing bash -c true", creatable},
		{"LD_PRELOAD=" + sticky + "/nothing true", creatable},
		// Nothing of this is run.
		{sticky + "/script", ""},
		{"flock -n " + sticky + "/lock /bin/true " + sticky + "/nothing", ""},
		{"exec 9<>" + sticky + "/lock; flock 9; true", ""},
		{"timeout 5 /bin/true " + sticky + "/nothing", ""},
		{"xargs -I{} rm " + sticky + "/{}", ""},
		{"logger -f " + sticky + "/nothing", ""},
		{"TMPDIR=" + sticky + " " + good + "/script", ""},
		{"python3 -c 'x=1/2' " + sticky + "/nothing", ""},
		{"curl -fsS http://d/v1/x -o " + sticky + "/nothing", ""},
	} {
		err := hook.Check(c.command, uid)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v, want %q", c.command, err, c.says)
		}
	}
	t.Setenv("PATH", sticky+":"+os.Getenv("PATH"))
	if err := hook.Check("cat /dev/null", uid); err == nil || !strings.Contains(err.Error(), searched) {
		t.Errorf("a program that others could put another one in front of: %v", err)
	}
}

// An option of a shell may take a word, and a line comes after all options.
func TestAShellsOptionsAreNotItsScript(t *testing.T) {
	uid := os.Geteuid()
	open := script(t, 0o757, 0o755)
	for command, refused := range map[string]bool{
		"bash -euo pipefail -c /bin/true":             false,
		"bash -o errexit -o pipefail -c /bin/true":    false,
		"bash -ceuo pipefail /bin/true":               false,
		"bash +o posix -O extglob -c /bin/true":       false,
		"bash --posix --norc -c /bin/true":            false,
		"bash -euo pipefail -c '" + open + " x'":      true,
		"bash -euo pipefail -c 'cd / && ./x'":         true,
		"bash -ceuo pipefail 'cd / && ./x'":           true,
		"sh -c -e 'cd / && ./x'":                      true,
		"sh -c -- 'cd / && ./x'":                      true,
		"sh -e -- x":                                  true,
		"bash -o pipefail x":                          true,
		"busybox sh -e -c 'cd / && ./x'":              true,
		"env LANG=C bash -euo pipefail -c 'cd /;./x'": true,
	} {
		if err := hook.Check(command, uid); (err != nil) != refused {
			t.Errorf("%q: %v, want refused: %v", command, err, refused)
		}
	}
}

// Whoever may write to the script after the start is found before the run.
func TestARefusedRunIsLoggedAndGivesItsReceipt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: only root's commands are checked")
	}
	path := script(t, 0o755, 0o755)
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
	c := hook.Commands{Default: "cat > " + dir + "/default", Others: "cat > " + dir + "/others", Limit: time.Minute,
		Of: map[election.Name]string{"payments": "cat > " + dir + "/own", "cron": "x"}}
	r := hook.Start(c, slog.New(slog.DiscardHandler))
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

// Elections that the configuration does not name run nothing unless that is asked
// for: anybody who may be a candidate can make them.
func TestWhatIsCovered(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	few := hook.Start(hook.Commands{Default: "x", Of: map[election.Name]string{"payments": "x", "cron": "x"}, Limit: time.Minute}, quiet)
	defer few.Close(t.Context())
	all := hook.Start(hook.Commands{Others: "x", Limit: time.Minute}, quiet)
	defer all.Close(t.Context())
	for name, want := range map[election.Name][2]bool{"default": {true, false}, "cron": {true, true}, "junk": {false, true}} {
		if got := [2]bool{few.Covers(name), all.Covers(name)}; got != want {
			t.Errorf("%s: covered %v, want %v", name, got, want)
		}
	}
	if (*hook.Runner)(nil).Covers("default") {
		t.Error("no runner covers something")
	}
	if names := few.Named(); len(names) != 2 || names[0] != "cron" {
		t.Errorf("named: %v", names)
	}
}
