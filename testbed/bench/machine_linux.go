package bench

import "github.com/prometheus/procfs"

// look finds out what the kernel tells of the machine.
func (m *Machine) look() {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return
	}
	if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if memory, err := fs.Meminfo(); err == nil && memory.MemTotalBytes != nil {
		m.MemoryMiB = *memory.MemTotalBytes >> 20
	}
	if load, err := fs.LoadAvg(); err == nil {
		m.Load1 = load.Load1
	}
}
