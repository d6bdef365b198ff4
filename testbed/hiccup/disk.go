package hiccup

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// watchDisk writes a byte now and then, and waits until the byte is on the disk.
func (m *Meter) watchDisk(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "hiccup"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("watch the disk: %w", err)
	}
	p := m.probe("disk", napDisk)
	m.running.Go(func() {
		defer f.Close()
		nap := time.NewTimer(napDisk)
		defer nap.Stop()
		for {
			select {
			case <-nap.C:
			case <-m.stop:
				return
			}
			if _, err := f.WriteAt([]byte{0}, 0); err == nil {
				_ = f.Sync()
			}
			nap.Reset(napDisk)
			m.tried(p)
		}
	})
	return nil
}
