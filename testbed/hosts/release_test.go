package hosts

import (
	"os/exec"
	"strings"
	"testing"
)

func TestTheFormerReleaseIsBuilt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the product of the release before: not with -short; CI runs it")
	}
	if _, err := FindFormer(t.Context()); err != nil {
		t.Skipf("it needs the history of the release before: %v", err)
	}
	b, err := BuildFormer(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), b.Path, "--version").Output()
	if err != nil || !strings.Contains(string(out), Former) {
		t.Errorf("it is %q, %v", out, err)
	}
}

func TestAReleaseGetsNoSettingThatItLacks(t *testing.T) {
	b := Binary{Lacks: []string{"keeper"}}
	got := string(b.lines([]byte("name: a\nkeeper: true\nkeeper-x: 1\n  keeper: 2\n")))
	if want := "name: a\nkeeper-x: 1\n  keeper: 2\n"; got != want {
		t.Errorf("got %q", got)
	}
}
