package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// bequeathTo is an environment variable with the path of a socket. If it is set, this test binary connects to
// the socket, and ends when it has read a line.
const bequeathTo = "DOYEN_TEST_BEQUEATH"

// TestPlayedProgram is the program of the next test. If it reads "bequeath", it starts a child that holds its
// connection. It tests nothing itself.
func TestPlayedProgram(t *testing.T) {
	path := os.Getenv(bequeathTo)
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.TrimSpace(line) == "bequeath" {
		file, err := conn.File()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command("sleep", "1000")
		child.ExtraFiles = []*os.File{file}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("child", child.Process.Pid)
	}
}

func TestAProgramIsGoneOnlyIfNobodyHoldsItsConnection(t *testing.T) {
	for word, want := range map[string]bool{"end": true, "bequeath": false} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		cmd := exec.Command(os.Args[0], "-test.run=^TestPlayedProgram$")
		cmd.Env = append(os.Environ(), bequeathTo+"="+path)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		conn, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p, err := proof.Of(conn, int64(boottime.Now()))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := io.WriteString(in, word+"\n"); err != nil {
			t.Fatal(err)
		}
		s := &stream{of: &candidacies{Config: &Config{Clock: boottime.Now}, streams: newStreams()}, process: p}
		got := s.gone(boottime.Now().Add(time.Hour))
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if _, after, found := strings.Cut(out.String(), "child "); found {
			if child, err := strconv.Atoi(strings.Fields(after)[0]); err == nil {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
		}
		if got != want {
			t.Errorf("%q: it is gone: %v, want %v", word, got, want)
		}
	}
}
