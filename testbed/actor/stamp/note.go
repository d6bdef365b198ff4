package stamp

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Note says that the command of a job has started or ended.
type Note struct {
	Stamp
	Key   string // DOYEN_KEY
	Try   int
	Ended bool // the command has done all of its work
}

const (
	noteFile = "notes"
	noteForm = "%s %d %d %d %d %d %t\n"
)

// Write adds the note to the notes of a folder, in a single write. So the file has all of the note or nothing of
// it, even if the process is killed.
func (n Note) Write(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, noteFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note: %w", err)
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, noteForm, n.Key, n.Term, n.PID, n.First, n.Last, n.Try, n.Ended)
	return wrap.Error(err, "note")
}

// Notes reads the notes of a folder, one for each process. Without a noted end, Last is the newest stamp.
func Notes(dir string) ([]Note, error) {
	file, err := os.Open(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	defer file.Close()
	stamps, err := Read(dir)
	if err != nil {
		return nil, err
	}
	type process struct {
		pid  int
		term uint64
	}
	newest, at := map[process]int64{}, map[Stamp]int{}
	for _, s := range stamps {
		newest[process{s.PID, s.Term}] = s.Last
	}
	var all []Note
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var n Note
		if _, err := fmt.Sscanf(lines.Text()+"\n", noteForm, &n.Key, &n.Term, &n.PID, &n.First, &n.Last, &n.Try, &n.Ended); err != nil {
			return nil, fmt.Errorf("read note %q: %w", lines.Text(), err)
		}
		who := Stamp{Term: n.Term, PID: n.PID, First: n.First}
		if i, known := at[who]; known {
			all[i] = n
			continue
		}
		at[who], n.Last = len(all), max(n.Last, newest[process{n.PID, n.Term}])
		all = append(all, n)
	}
	return all, nil
}
