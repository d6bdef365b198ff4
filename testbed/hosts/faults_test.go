package hosts_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/netns"
)

// act is a program that tests start by Exec.
func act(what, argument string) int {
	var err error
	switch what {
	case "tell the time":
		fmt.Println(int64(boottime.Now()))
	case "tell the wall clock":
		fmt.Println(time.Now().UnixNano())
	case "write":
		err = write(argument)
	case "burn": // the argument is milliseconds of processor time
		var limit int
		limit, err = strconv.Atoi(argument)
		for burnt() < time.Duration(limit)*time.Millisecond {
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 64<<10)); err != nil {
		return err
	}
	return file.Sync()
}

func burnt() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return time.Hour
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// running is a program on a host.
type running struct {
	cmd    *exec.Cmd
	output *bytes.Buffer
	begun  time.Time
}

func start(t *testing.T, h *hosts.Host, what, argument string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{exec.Command(self, "act", what, argument), &bytes.Buffer{}, time.Now()}
	r.cmd.Stdout = r.output
	admitted, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Exec(r.cmd); err != nil {
		t.Fatal(err)
	}
	if err := admitted.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// wait returns what the program printed and how long it took.
func (r *running) wait() (string, time.Duration, error) {
	err := r.cmd.Wait()
	return strings.TrimSpace(r.output.String()), time.Since(r.begun), err
}

func needNamespaces(t *testing.T) {
	t.Helper()
	if _, err := hosts.BestNet(); err != nil {
		t.Skipf("CI runs it as root: %v", err)
	}
}

// laid returns a cluster in namespaces with disk faults. No agent runs yet.
func laid(t *testing.T, n int) *hosts.Cluster {
	t.Helper()
	needNamespaces(t)
	dir := temporary(t)
	c := config(n, "polite")
	c.Net, c.DiskFaults = hosts.Namespaces, true
	cluster, err := hosts.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(ended()); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%d files were left behind", len(left))
		}
	})
	return cluster
}

func TestADiskFillsUpAndIsFreed(t *testing.T) {
	h := laid(t, 1).Hosts()[0]
	path := filepath.Join(h.Config().DataDir, "state")
	if said, _, err := start(t, h, "write", path).wait(); err != nil {
		t.Fatalf("before: %s", said)
	}
	if _, err := hosts.FullDisk().Begin(nil, h); err != nil {
		t.Fatal(err)
	}
	if said, _, err := start(t, h, "write", path+".new").wait(); err == nil || !strings.Contains(said, "no space left") {
		t.Errorf("on a full disk: %q", said)
	}
	if _, err := hosts.FullDisk().End(nil, h); err != nil {
		t.Fatal(err)
	}
	if said, _, err := start(t, h, "write", path).wait(); err != nil {
		t.Errorf("on a freed disk: %s", said)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the host's disk is seen outside: %v", err)
	}
	if _, err := hosts.Wipe().Begin(nil, h); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.Wipe().Begin(nil, h); !errors.Is(err, hosts.ErrUp) {
		t.Errorf("wiping a host that is up: %v", err)
	}
}

func TestADiskIsSlowOrStuck(t *testing.T) {
	h := laid(t, 1).Hosts()[0]
	path := filepath.Join(h.Config().DataDir, "state")
	_, took, err := start(t, h, "write", path).wait()
	t.Logf("without a delay a program that syncs takes %s", took)
	if err != nil {
		t.Fatal(err)
	}
	const delay = 300 * time.Millisecond
	if _, err := hosts.SlowDisk(delay).Begin(nil, h); err != nil {
		t.Fatal(err)
	}
	if said, took, err := start(t, h, "write", path).wait(); err != nil || took < delay {
		t.Errorf("on a slow disk it took %s: %s", took, said)
	}
	if _, err := hosts.SlowDisk(hosts.Stuck).Begin(nil, h); err != nil {
		t.Fatal(err)
	}
	stuck, killed := start(t, h, "write", path), start(t, h, "write", path+"2")
	ended := make(chan error, 1)
	go func() {
		_, _, err := stuck.wait()
		ended <- err
	}()
	_ = killed.cmd.Process.Kill()
	if _, _, err := killed.wait(); err == nil {
		t.Error("one that was killed ended well")
	}
	select {
	case <-ended:
		t.Fatal("on a stuck disk it ended")
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := hosts.SlowDisk(0).End(nil, h); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("on a disk that works again: %v", err)
	}
}

func TestAClockRunsAtItsRate(t *testing.T) {
	h := laid(t, 1).Hosts()[0]
	// tell measures how far the host's clock is ahead.
	tell := func() time.Duration {
		t.Helper()
		before := boottime.Now()
		said, _, err := start(t, h, "tell the time", "").wait()
		after := boottime.Now()
		shown, parseErr := strconv.ParseInt(said, 10, 64)
		if err := errors.Join(err, parseErr); err != nil {
			t.Fatal(err)
		}
		const rounding = election.Instant(time.Microsecond)
		real := h.Real(election.Instant(shown))
		if real < before-rounding || real > after+rounding {
			t.Errorf("it shows %d, taken for %d, not between %d and %d", shown, real, before, after)
		}
		return election.Instant(shown).Sub(real)
	}
	if ahead := tell(); ahead != 0 {
		t.Errorf("without a fault the clock is %s ahead", ahead)
	}
	if _, err := hosts.Clock(2).Begin(nil, h); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	tell()
	eventually(t, "100 ms passed", func() bool { return time.Since(begun) > 100*time.Millisecond })
	if ahead := tell(); ahead < 80*time.Millisecond {
		t.Errorf("after 100 ms at twice the rate it is %s ahead", ahead)
	}
	if _, err := hosts.Clock(1).Begin(nil, h); err != nil {
		t.Fatal(err)
	}
	if ahead := tell(); ahead < 80*time.Millisecond {
		t.Errorf("back at the true rate it stepped back, %s ahead", ahead)
	}
	if _, err := hosts.Clock(5).Begin(nil, h); err == nil {
		t.Error("a rate of 5 was accepted")
	}
}

func TestAWallClockIsAhead(t *testing.T) {
	h := laid(t, 1).Hosts()[0]
	tell := func(what string) int64 {
		t.Helper()
		said, _, err := start(t, h, what, "").wait()
		shown, parseErr := strconv.ParseInt(said, 10, 64)
		if err := errors.Join(err, parseErr); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	for _, ahead := range []time.Duration{0, time.Hour, -time.Minute, 0} {
		if _, err := hosts.WallClock(ahead).Begin(nil, h); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		shown := time.Unix(0, tell("tell the wall clock"))
		if after := time.Now(); shown.Before(before.Add(ahead)) || shown.After(after.Add(ahead)) {
			t.Errorf("%s ahead it shows %s, not between %s and %s later", ahead, shown, before, after)
		}
		since := boottime.Now()
		if at := h.Real(election.Instant(tell("tell the time"))); at < since.Add(-time.Millisecond) || at > boottime.Now() {
			t.Errorf("with the wall clock %s ahead, CLOCK_BOOTTIME is wrong too", ahead)
		}
	}
}

func TestAStarvedHostHasATenthOfAProcessor(t *testing.T) {
	for _, net := range []hosts.Net{hosts.Loopback, hosts.Namespaces} {
		c := config(1, "polite")
		if c.Net = net; net == hosts.Namespaces {
			needNamespaces(t)
		}
		temporary(t)
		cluster, err := hosts.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close(ended())
		h := cluster.Hosts()[0]
		if _, err := hosts.Starve().Begin(nil, h); err != nil {
			t.Fatal(err)
		}
		if said, took, err := start(t, h, "burn", "20").wait(); err != nil || took < 100*time.Millisecond {
			t.Errorf("20 ms of processor time took %s: %v: %s", took, err, said)
		}
		if _, err := hosts.Starve().End(nil, h); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Close(ended()); err != nil {
			t.Error(err)
		}
	}
}

func TestHostsAreCutAndHealed(t *testing.T) {
	c := laid(t, 4)
	names := []string{"alpha", "beta", "gamma", "delta"} // their numbers are 0 to 3
	slow := netns.Link{Delay: time.Millisecond}
	if _, err := hosts.Degrade(names[1:2], hosts.Forth, slow, "").Begin(c, c.Hosts()[0]); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []struct {
		a, b []string
		d    hosts.Direction
		want string // the cut links, each as the numbers of two hosts
	}{
		{names[:1], nil, hosts.BothWays, "01 02 03 10 20 30"},
		{names[:1], nil, hosts.Forth, "01 02 03"},
		{names[:1], names[2:3], hosts.Back, "20"},
		{names[:2], names[2:], hosts.BothWays, "02 03 12 13 20 21 30 31"},
	} {
		for _, a := range cut.a {
			h, _ := c.Host(a)
			if _, err := hosts.Cut(cut.b, cut.d).Begin(c, h); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for i, from := range names {
			for j, to := range names {
				if i == j {
					continue
				}
				if l, err := c.Link(from, to); err != nil {
					t.Error(err)
				} else if l.Cut {
					got = append(got, fmt.Sprint(i)+fmt.Sprint(j))
				}
			}
		}
		if strings.Join(got, " ") != cut.want {
			t.Errorf("%v from %v, direction %d: cut %v, want %s", cut.a, cut.b, cut.d, got, cut.want)
		}
		if err := c.Heal(); err != nil {
			t.Fatal(err)
		}
		if l, err := c.Link("alpha", "beta"); err != nil || l != slow {
			t.Errorf("after the heal the link from alpha to beta is %+v (%v)", l, err)
		}
	}
	if _, err := hosts.Unplug().Begin(c, c.Hosts()[1]); err != nil {
		t.Error(err)
	}
	if _, err := hosts.Cut([]string{"omega"}, hosts.Forth).Begin(c, c.Hosts()[0]); err == nil || !strings.Contains(err.Error(), "omega") {
		t.Errorf("cutting a host that is not there: %v", err)
	}
}

func TestWhatLoopbackLacksItSays(t *testing.T) {
	temporary(t)
	cluster, err := hosts.New(config(2, "polite"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close(ended())
	h := cluster.Hosts()[0]
	for _, f := range []hosts.Fault{hosts.Degrade([]string{"beta"}, hosts.Forth, netns.Link{Delay: 1}, ""), hosts.Cut(nil, hosts.Forth),
		hosts.Unplug(), hosts.FullDisk(), hosts.SlowDisk(time.Second)} {
		if _, err := f.Begin(cluster, h); !errors.Is(err, hosts.ErrUnavailable) {
			t.Errorf("%s: %v, want that it is not available", f.Name, err)
		}
	}
	if err := cluster.Heal(); !errors.Is(err, hosts.ErrUnavailable) {
		t.Errorf("heal: %v, want that it is not available", err)
	}
}
