package bench

import "github.com/prometheus/procfs"

// processor is the model of the machine's processor; empty if that is not known.
func processor(fs procfs.FS) string {
	if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
		return cpus[0].ModelName
	}
	return ""
}
