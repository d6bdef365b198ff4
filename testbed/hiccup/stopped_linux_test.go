package hiccup_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
)

const asChild = "DOYEN_HICCUP_CHILD"

// TestMain lets this binary be the process that is stopped: it tells its
// processors' hiccups each time it is asked for them.
func TestMain(m *testing.M) {
	dir := os.Getenv(asChild)
	if dir == "" {
		os.Exit(m.Run())
	}
	began := boottime.Now()
	meter, err := hiccup.Start(dir)
	if err != nil {
		fmt.Println(err)
	}
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		_, longest := hiccup.Total(meter.Since(began))
		fmt.Println(longest.Nanoseconds())
	}
	meter.Stop()
}

// TestAProcessThatIsStoppedHasAHiccup stops one for longer than any scheduler
// takes, and asks it afterwards.
func TestAProcessThatIsStoppedHasAHiccup(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(executable)
	child.Env = append(os.Environ(), asChild+"="+t.TempDir())
	in, _ := child.StdinPipe()
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(out)
	ask := func() time.Duration {
		fmt.Fprintln(in)
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ns)
	}
	ask() // so it has started to watch
	const stopped = 300 * time.Millisecond
	if err := unix.Kill(child.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(stopped)
	if err := unix.Kill(child.Process.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if longest := ask(); longest < stopped/2 {
		t.Errorf("stopped for %s, it has seen a hiccup of %s", stopped, longest)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
