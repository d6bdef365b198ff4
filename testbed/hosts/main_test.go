package hosts_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/netns"
)

// TestMain makes this executable serve as agents, and as a testbed that a test kills.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "stand-in" {
		os.Exit(standIn(os.Args[2]))
	}
	if len(os.Args) == 4 && os.Args[1] == "act" {
		os.Exit(act(os.Args[2], os.Args[3]))
	}
	// Without root, some tests need a user namespace.
	if code, ran, _ := netns.Rerun(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// program runs this executable in place of an agent.
type program string

func (p program) Command(settings.Config, string) (*exec.Cmd, error) {
	self, err := os.Executable()
	return exec.Command(self, "stand-in", string(p)), err
}

func standIn(kind string) int {
	signals := make(chan os.Signal, 1)
	switch kind {
	case "polite":
		signal.Notify(signals, syscall.SIGTERM)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "failing":
		fmt.Fprintf(os.Stderr, "starting\nthe disk is full\n")
		return 78
	case "testbed":
		return standInTestbed(config(2, "deaf"))
	case "testbed in namespaces":
		c := config(2, "deaf")
		c.Net, c.DiskFaults = hosts.Namespaces, true
		return standInTestbed(c)
	}
	fmt.Fprintln(os.Stderr, "ready")
	<-signals
	return 0
}

// standInTestbed starts two agents, prints their process IDs and its directory, and waits until it
// is killed.
func standInTestbed(config hosts.Config) int {
	c, err := hosts.New(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, h := range c.Hosts() {
		if _, err := h.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(h.PID())
	}
	fmt.Println(filepath.Dir(c.Hosts()[0].Config().Socket))
	select {}
}
