package guard

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// linked returns the two ends of a link.
func linked(t *testing.T) (a, b *link) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*link
	for i, fd := range pair {
		file := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		ends[i] = &link{conn: conn.(*net.UnixConn)}
	}
	return ends[0], ends[1]
}

func TestMessagesKeepTheirOrderAndTheStartItsDescriptor(t *testing.T) {
	runner, guard := linked(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, o := range []Order{{Do: Lease, Term: 1}, {Do: Start, Term: 2, Args: [][]byte{bytes.Repeat([]byte{0xff}, 1<<16)}}, {Do: Signal, Signal: 3}} {
		var fds []int
		if o.Do == Start {
			fds = []int{int(writer.Fd())}
		}
		if err := send(runner.conn, o, fds...); err != nil {
			t.Fatal(err)
		}
	}
	writer.Close()
	runner.conn.Close()
	var did []string
	for {
		var o Order
		if ok, err := guard.next(&o); !ok || err != nil {
			break
		}
		did = append(did, o.Do)
		if o.Do != Start {
			continue
		}
		copied := os.NewFile(uintptr(guard.take(1)[0]), "copy")
		if _, err := copied.WriteString("through"); err != nil {
			t.Error(err)
		}
		copied.Close()
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != "through" {
		t.Errorf("the pipe has %q, %v", text, err)
	}
	if !slices.Equal(did, []string{Lease, Start, Signal}) {
		t.Errorf("received %v", did)
	}
}

// Some kernels have no lists of children: the scan has to find the same children.
func TestBothWaysToFindChildrenAgree(t *testing.T) {
	command := exec.Command("/bin/sh", "-c", "sleep 1000 & echo $!; read line; kill $!")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	listed, scanned := children(command.Process.Pid), scanChildren(command.Process.Pid)
	if len(listed) != 1 || !slices.Equal(listed, scanned) {
		t.Errorf("children %v in the lists, %v by the scan", listed, scanned)
	}
	if below := Descendants(os.Getpid()); !slices.Contains(below, listed[0]) || !slices.Contains(below, command.Process.Pid) {
		t.Errorf("descendants %v", below)
	}
	stdin.Close()
	command.Wait()
}
