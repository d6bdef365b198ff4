package bench

import "github.com/prometheus/procfs"

// processor returns the model of the machine's processor; empty if it is unknown.
func processor(fs procfs.FS) string {
	if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
		return cpus[0].ModelName
	}
	return ""
}
