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
