package hosts

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const wordBytes = 8 // of a pointer, and of the kernel's auxiliary vector

// startWithoutVDSO starts a process that does not know the kernel's vDSO, from which it would read its clocks
// without a system call. It traces the process until the process has executed its program. Call it on a spawner's
// thread: only the thread that started the process can trace it, and the process is killed when that thread ends.
func startWithoutVDSO(cmd *exec.Cmd) error {
	tie(cmd)
	cmd.SysProcAttr.Ptrace = true
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, 0, nil)
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("it did not stop after exec: %v", status)
	}
	if err == nil {
		err = hideVDSO(pid)
	}
	if err == nil {
		err = syscall.PtraceDetach(pid)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return fmt.Errorf("hide the vDSO: %w", err)
	}
	return nil
}

// hideVDSO overwrites the auxiliary vector's entry for the vDSO. The stack of a process that has just executed a
// program has the number of arguments, pointers to the arguments, pointers to the environment, then this vector.
func hideVDSO(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const startStack = 28 - 3 // by proc(5); fields begins with the third, which follows the name
	at, err := strconv.ParseUint(fields[startStack], 10, 64)
	if err != nil {
		return err
	}
	peek := func() (word uint64) {
		var bytes [wordBytes]byte
		if err == nil {
			_, err = syscall.PtracePeekData(pid, uintptr(at), bytes[:])
		}
		at += wordBytes
		return binary.NativeEndian.Uint64(bytes[:])
	}
	arguments := peek()
	at += wordBytes * (arguments + 1) // the arguments, and the zero after them
	for peek() != 0 && err == nil {   // the environment
	}
	for err == nil {
		switch kind := peek(); kind {
		case atVDSO:
			var ignore [wordBytes]byte
			binary.NativeEndian.PutUint64(ignore[:], atIgnore)
			_, err = syscall.PtracePokeData(pid, uintptr(at-wordBytes), ignore[:])
			return err
		case 0:
			return nil // the process has no vDSO
		}
		peek() // the entry's value
	}
	return err
}

// The kinds AT_IGNORE and AT_SYSINFO_EHDR of elf.h.
const (
	atIgnore = 1
	atVDSO   = 33
)
