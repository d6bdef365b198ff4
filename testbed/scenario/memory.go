package scenario

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// memoryQuantity: memory HOST LIMIT. It is the most resident memory in MiB that the agent's
// process has had since the mark.
func memoryQuantity(w *world, _ string, words []string) (float64, string, []string, error) {
	if len(words) == 0 {
		return 0, "", nil, errors.New("want a host and a limit in MiB, as in: memory $l1 <= 48")
	}
	h, err := w.oneHost(words[0])
	if err != nil {
		return 0, "", nil, err
	}
	p, err := procfs.NewProc(h.PID())
	if err != nil {
		return 0, "", nil, fmt.Errorf("read the memory of %s: %w", h.Name(), err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, "", nil, fmt.Errorf("read the memory of %s: %w", h.Name(), err)
	}
	mib := float64(status.VmHWM) / (1 << 20)
	return mib, fmt.Sprintf("%s had at most %.1f MiB", h.Name(), mib), words[1:], nil
}

// forgetPeaks makes the kernel count each agent's most memory from now on.
func (w *world) forgetPeaks() {
	for _, h := range w.lab.Cluster.Hosts() {
		if pid := h.PID(); pid > 0 {
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // an error: it counts from the start
		}
	}
}
