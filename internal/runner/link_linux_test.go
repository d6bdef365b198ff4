package runner

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
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
	for _, o := range []order{{Do: doLease, Term: 1}, {Do: doStart, Term: 2, Campaign: strings.Repeat("x", 200)}, {Do: doSignal, Signal: 3}} {
		fd := -1
		if o.Do == doStart {
			fd = int(writer.Fd())
		}
		if err := runner.send(o, fd); err != nil {
			t.Fatal(err)
		}
	}
	writer.Close()
	runner.conn.Close()
	var did []string
	for {
		var o order
		if err := guard.receive(&o); err != nil {
			break
		}
		did = append(did, o.Do)
		if o.Do != doStart {
			continue
		}
		copied := os.NewFile(uintptr(guard.take()), "copy")
		if _, err := copied.WriteString("through"); err != nil {
			t.Error(err)
		}
		copied.Close()
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != "through" {
		t.Errorf("the pipe has %q, %v", text, err)
	}
	if !slices.Equal(did, []string{doLease, doStart, doSignal}) {
		t.Errorf("received %v", did)
	}
}

func TestAMessageWithoutEndIsAnError(t *testing.T) {
	a, b := linked(t)
	go a.conn.Write(make([]byte, 2*maxMessage))
	if err := b.receive(new(order)); err == nil || !strings.Contains(err.Error(), "no end") {
		t.Errorf("got %v", err)
	}
}

// The kernel's lists of children may be missing; the scan has to find the same.
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
	if below := descendants(os.Getpid()); !slices.Contains(below, listed[0]) || !slices.Contains(below, command.Process.Pid) {
		t.Errorf("descendants %v", below)
	}
	stdin.Close()
	command.Wait()
}
