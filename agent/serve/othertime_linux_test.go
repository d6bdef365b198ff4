package serve

import (
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAProcessOfAnotherTimeNamespaceIsTold(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWTIME, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Skip("time namespaces need root and Linux 5.6, which CI has:", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if otherTime(int32(os.Getpid())) {
		t.Error("this process is in its own")
	}
	if !otherTime(int32(cmd.Process.Pid)) {
		t.Error("the other one is not noticed")
	}
}

func TestAProgramWithAnotherClockMayNotStand(t *testing.T) {
	h := hosts(t, func(s *Server) { s.candidacies.otherTime = func(pid int32) bool { return pid == int32(os.Getpid()) } })
	_, response, _ := h.post(t, "/v1/elections/payments/campaign", "{}")
	if response.StatusCode != http.StatusBadRequest || len(h.Campaigns()) != 0 {
		t.Error(response.Status)
	}
}
