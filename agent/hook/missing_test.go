package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMisspeltProgramIsFound(t *testing.T) {
	dir := t.TempDir()
	program, text := filepath.Join(dir, "program"), filepath.Join(dir, "text")
	for path, mode := range map[string]os.FileMode{program: 0o755, text: 0o644} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"":                                     "",
		program + " x":                         "",
		"exec " + program + " report.service":  "",
		"echo $DOYEN_EVENT >> /var/lib/x":      "",
		"A=b; test $A = b && /not/run":         "", // what follows && may never run
		"if /bin/true; then /not/run; fi":      "",
		"f() { /not/run; }; f":                 "",
		"PATH=" + dir + ":$PATH OUT=x program": "",
		"$PROGRAM x":                           "",
		"exec -a x /not/judged":                "",
		dir + "/progam x":                      dir + "/progam does not exist",
		"VIP=1 DEV=x exec " + dir + "/progam":  dir + "/progam does not exist",
		"true; " + dir + "/progam":             dir + "/progam does not exist",
		dir + "/progam || true":                dir + "/progam does not exist",
		text:                                   text + " is not executable: chmod +x " + text,
		dir:                                    dir + " is a directory",
		"no-such-program-here x":               "there is no program no-such-program-here in ",
		"echo 'x":                              "read the command: ",
	} {
		err := Missing(command)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", command, err, want)
		}
	}
}
