package keeper

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The service manager gets the life's notifications from the keeper, and none of other processes.
func TestNotificationsAreThoseOfTheLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	next := func() string {
		t.Helper()
		b := make([]byte, 1000)
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	k := keep(t, []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_PID=1"}, "notify")
	life := k.life()
	if a, b := next(), next(); a != "WATCHDOG=1" || b != "READY=1" {
		t.Errorf("notified of %q and %q", a, b)
	}
	stranger, err := net.Dial("unixgram", k.line("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	fmt.Fprint(stranger, "STOPPING=1")
	k.send(life, syscall.SIGTERM)
	if got := next(); got != "STATUS=later" {
		t.Errorf("notified of %q", got)
	}
}

// The life may write before the keeper's next step. That must not count as another process's notification.
func TestALifeIsHeardWhileItIsBeingStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv(notifyVariable, path)
	n, err := newNotifier()
	if err != nil {
		t.Fatal(err)
	}
	defer n.file.Close()
	_, _ = n.starting(func() (int, error) {
		to, err := net.Dial("unixgram", n.name)
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		fmt.Fprint(to, "READY=1")
		for unread := 1; unread > 0; runtime.Gosched() {
			if unread, err = unix.IoctlGetInt(int(n.file.Fd()), unix.SIOCINQ); err != nil {
				t.Fatal(err)
			}
		}
		return os.Getpid(), nil
	})
	b := make([]byte, 100)
	if err := manager.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if size, err := manager.Read(b); err != nil || string(b[:size]) != "READY=1" {
		t.Errorf("%q, %v", b[:size], err)
	}
}
