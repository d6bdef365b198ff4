package client_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client/clienttest"
)

// The program of docs/api.md is compiled and run as it is written there.
func TestTheProgramOfTheDocumentationRuns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?ms)^```go\n(package main.*?)^```$").FindSubmatch(page)
	if program == nil {
		t.Fatal("docs/api.md has no program")
	}
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, program[1], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("build it: %v\n%s", err, out)
	}
	a := clienttest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), clienttest.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary)
	command.Env = append(os.Environ(), "DOYEN_SOCKET="+a.Socket())
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stood := a.Stood()
	stood.Elect(7, lease)
	lines := bufio.NewScanner(stderr)
	for _, want := range []string{"leading under term 7", "paying, with token 7", "has ended: transferred", "terminated"} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("it says %q, want %q", lines.Text(), want)
		}
		switch want {
		case "paying, with token 7":
			stood.Revoke("transferred", time.Minute)
		case "has ended: transferred":
			wait(t, "receipt", stood.Receipts())
			if err := command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}

// The fragment in the README compiles as it is, inside a program.
func TestTheFragmentOfTheReadmeCompiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	fragment := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindSubmatch(page)
	if fragment == nil {
		t.Fatal("README.md has no Go in it")
	}
	program := "package main\n\nimport (\n\t\"context\"\n\n\t\"github.com/doyen-election/doyen/client\"\n)\n\n" +
		"func main() { stand(context.Background(), nil) }\n\n" +
		"func stand(ctx context.Context, pay func(context.Context, uint64) error) error {\n" + string(fragment[1]) + "return err\n}\n"
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", source).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
