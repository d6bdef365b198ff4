package record

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/leasepage"
)

// View reads the record of a life that runs, without its lock. It is used by one goroutine at
// a time.
type View struct {
	path   string
	file   *os.File
	memory memory
}

// Life tells which process runs: it is alive for as long as the process is.
type Life struct {
	Lineage election.LineageID
	Number  uint64
	PID     int
	Started uint64 // as /proc/PID/stat has it
}

// Look opens the record at the path for reading. A View stays with that file: when a new
// lineage has begun, it reports that the former was ended.
func Look(path string) (*View, error) {
	v, err := look(path)
	if err != nil {
		return nil, fmt.Errorf("read record %s: %w", path, err)
	}
	return v, nil
}

func look(path string) (*View, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	m, err := mapWords(f, wordRows, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &View{path: path, file: f, memory: m}, nil
}

// tries is how often a value is read that changes meanwhile.
const tries = 100

// Life returns the newest life; an error if the record is damaged, destroyed or replaced.
func (v *View) Life() (l Life, err error) {
	defer leasepage.Caught(leasepage.Guard(), &err)
	if !has(v.path, v.file) {
		return l, errDestroyed
	}
	h, err := getHeader(v.memory)
	if err != nil {
		return l, err
	}
	for range tries {
		life := newValue(wordLife, lifeRoom, v.memory[wordCheck])
		if now, whole := life.load(v.memory, make([]uint64, lifeRoom)); whole && len(now) == lifeRoom {
			return Life{Lineage: h.lineage, Number: now[0], PID: int(now[1]), Started: now[2]}, nil
		}
	}
	return l, errDamaged
}

// Tick is the instant by which the life said that it will tick next; 0: it has not, or there
// is no record any more.
func (v *View) Tick() (next election.Instant) {
	var err error
	func() {
		defer leasepage.Caught(leasepage.Guard(), &err)
		next = election.Instant(atomic.LoadUint64(&v.memory[wordTick]))
	}()
	return next
}

// Close gives the memory back.
func (v *View) Close() error {
	unmap(v.memory)
	v.memory = nil
	return v.file.Close()
}
