package proof

import (
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// bothEnds returns both ends of a connection.
func bothEnds(t *testing.T) (own, other *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if other, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	if own, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close(); other.Close() })
	return own, other
}

func thePeer(t *testing.T, conn *net.UnixConn) uint32 {
	t.Helper()
	inode, err := peerInode(conn)
	if err != nil {
		t.Fatal(err)
	}
	return inode
}

func stillHeld(t *testing.T, inode uint32) bool {
	t.Helper()
	is, err := isHeld(inode)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestASocketIsUnheldOnceItsLastDescriptorIsClosed(t *testing.T) {
	own, other := bothEnds(t)
	want, err := ownInode(other)
	if err != nil {
		t.Fatal(err)
	}
	if got := thePeer(t, own); got != want || !stillHeld(t, want) {
		t.Fatalf("the peer is %d, held %t; want %d, held", got, stillHeld(t, want), want)
	}
	second, err := other.File()
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	if thePeer(t, own) != want || !stillHeld(t, want) {
		t.Error("one of its two descriptors is left, and it counts as unheld")
	}
	second.Close()
	if thePeer(t, own) != 0 || stillHeld(t, want) {
		t.Error("its last descriptor is closed, and it counts as held")
	}
}

func TestAShutDownSocketIsHeld(t *testing.T) {
	own, other := bothEnds(t)
	for _, shut := range []func() error{other.CloseRead, other.CloseWrite} {
		if err := shut(); err != nil {
			t.Fatal(err)
		}
	}
	if inode := thePeer(t, own); inode == 0 || !stillHeld(t, inode) {
		t.Error("it counts as unheld")
	}
}

// A descriptor that is under way in a message can be received by anybody.
func TestASocketInAMessageIsHeld(t *testing.T) {
	own, other := bothEnds(t)
	from, to := bothEnds(t)
	file, err := other.File()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := from.WriteMsgUnix([]byte("x"), unix.UnixRights(int(file.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	file.Close()
	other.Close()
	if inode := thePeer(t, own); inode == 0 || !stillHeld(t, inode) {
		t.Error("it counts as unheld")
	}
	to.Close() // the message is lost too
	if thePeer(t, own) != 0 {
		t.Error("nobody can receive it any more, and it counts as held")
	}
}

func TestWhatCannotBeAskedIsAnError(t *testing.T) {
	own, _ := bothEnds(t)
	own.Close()
	if inode, err := peerInode(own); err == nil {
		t.Errorf("a closed connection has the peer %d", inode)
	}
}
