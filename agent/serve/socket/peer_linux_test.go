package socket

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel reports groups that a service manager or a container gave a process, and that no database has.
func TestTheKernelTellsTheGroupsOfThePeer(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	connect := func() (int, error) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		return fd, unix.Connect(fd, &unix.SockaddrUnix{Name: l.Addr().String()})
	}
	ask := connect
	if os.Geteuid() == 0 {
		want = nil
		for g := range 100 { // more groups than the first buffer holds
			want = append(want, 70_000+g)
		}
		ask = func() (int, error) {
			runtime.LockOSThread() // and never unlocked: the thread ends with its groups
			if err := unix.Setgroups(want); err != nil {
				return -1, err
			}
			return connect()
		}
	}
	connected := make(chan error, 1)
	fd := -1
	go func() {
		var err error
		fd, err = ask()
		connected <- err
	}()
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, _ := PeerOf(c)
	var groups []int
	for _, g := range got.Groups {
		groups = append(groups, int(g))
	}
	slices.Sort(groups)
	slices.Sort(want)
	if !got.AllGroups || !slices.Equal(groups, want) {
		t.Errorf("groups %v (all: %t), want %v", groups, got.AllGroups, want)
	}
	_, pipe := net.Pipe()
	if _, err := PeerOf(pipe); err == nil {
		t.Error("a connection that is not a socket has a peer")
	}
}
