package simulation

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

// filesystem is one host's data directory: what its kernel shows, and what its disk holds.
// Bytes that were not synced are shown until the power fails. Then none, some or all of them remain.
// The code that reads and writes it is the agent's real store.
//
// It allows what POSIX allows. Without a sync, the bytes and the name of a new file reach the
// disk in any order. Bytes whose sync failed may never reach the disk, though they can be read and later
// syncs report no error.
type filesystem struct {
	shown   map[string]*inode
	durable map[string]*inode
	changes []rename // of names, in order, that are not synced yet
}

// inode is a file, under any name or none.
type inode struct {
	data   []byte // as the kernel shows it
	synced []byte // as the disk has it for sure
	clean  bool   // the kernel believes that data is on the disk; that is true unless lost
	lost   bool   // a sync failed: data may never reach the disk
}

// rename gives a name to a file and takes the file's former name away, at once.
type rename struct {
	name string
	file *inode
	from string // the former name; "": it had none
}

func newFilesystem() filesystem {
	return filesystem{shown: map[string]*inode{}, durable: map[string]*inode{}}
}

// format makes a file with these bytes, which are on disk for sure.
func (f *filesystem) format(name string, data []byte) {
	file := &inode{data: data, synced: data, clean: true}
	f.shown[name], f.durable[name] = file, file
}

// sure returns what the disk holds under that name in any case; false if there may be no such
// file.
func (f *filesystem) sure(name string) ([]byte, bool) {
	file := f.durable[name]
	if file == nil {
		return nil, false
	}
	return file.synced, true
}

// settled reports whether a power cut would change nothing.
func (f *filesystem) settled() bool {
	return len(f.changes) == 0 && !slices.ContainsFunc(f.files(), func(i *inode) bool { return !bytes.Equal(i.data, i.synced) })
}

// files returns, always in the same order, the files that have a name or may have one after a
// power cut.
func (f *filesystem) files() []*inode {
	var files []*inode
	add := func(i *inode) {
		if i != nil && !slices.Contains(files, i) {
			files = append(files, i)
		}
	}
	for _, name := range names {
		add(f.shown[name])
		add(f.durable[name])
	}
	for _, c := range f.changes {
		add(c.file)
	}
	return files
}

// names are the names of all files that a store uses here.
var names = []string{"identity.key", "state", "state.new", "words", "words.new"}

// powerCut takes back all, some or nothing of what was not synced: the disk may have begun to write without a
// sync.
func (f *filesystem) powerCut(r *rand.Rand) {
	for _, file := range f.files() {
		if !bytes.Equal(file.data, file.synced) {
			switch pick(r, 0, 1, 2) {
			case 0:
				file.data = file.synced
			case 1:
				file.data = torn(r, file.data, file.synced)
			}
			if file.lost && r.IntN(4) > 0 {
				file.data = file.synced
			}
		}
		file.synced, file.clean, file.lost = file.data, true, false
	}
	for _, c := range f.changes[:r.IntN(len(f.changes)+1)] {
		c.apply(f.durable)
	}
	f.changes = nil
	f.shown = map[string]*inode{}
	for _, name := range names {
		if file := f.durable[name]; file != nil {
			f.shown[name] = file
		}
	}
}

func (c rename) apply(names map[string]*inode) {
	delete(names, c.from)
	names[c.name] = c.file
}

func (f *filesystem) change(c rename) {
	c.apply(f.shown)
	f.changes = append(f.changes, c)
}

// torn returns part of the new data: its beginning, or its beginning followed by old bytes. If
// the new data only adds to the old bytes, those are all there.
func torn(r *rand.Rand, data, old []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	part := slices.Clone(data)
	at := r.IntN(len(part))
	if bytes.HasPrefix(data, old) {
		at = len(old) + r.IntN(len(data)-len(old))
	}
	if r.IntN(2) == 0 {
		return part[:at]
	}
	end := part[at:]
	clear(end)
	copy(end, old[min(at, len(old)):])
	if bytes.Equal(part, data) {
		end[0]++
	}
	return part
}

var (
	errDies  = errors.New("the process is killed")
	errFails = errors.New("input/output error")
)

// calls are the calls of one process to the filesystem. The process may die before one of them,
// or one of them may fail.
type calls struct {
	*filesystem
	dies  int // the process dies before that call; below 0: before none
	fails int // that call fails; below 0: none
	made  int // counts the calls that change or sync something
	rng   *rand.Rand
}

// maxCalls is how many calls the write of one file makes at most, and maxCallsOf is the same for a whole write.
const maxCalls = 5

func maxCallsOf(p *election.Persist) int {
	if len(p.Words) > 0 && p.State != nil {
		return 2 * maxCalls
	}
	return maxCalls
}

func (c *calls) next() (fails bool, err error) {
	n := c.made
	c.made++
	if c.dies >= 0 && n >= c.dies {
		return false, errDies
	}
	return n == c.fails, nil
}

func (c *calls) Open(name string) (store.File, error) {
	i := c.shown[name]
	if i == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{inode: i, calls: c}, nil
}

func (c *calls) Create(name string) (store.File, error) {
	if fails, err := c.next(); fails || err != nil {
		return nil, errors.Join(err, errFails)
	}
	i := c.shown[name]
	if i == nil {
		i = &inode{clean: true}
		c.change(rename{name: name, file: i})
	}
	i.data, i.clean = nil, false
	return &file{inode: i, calls: c}, nil
}

func (c *calls) Rename(from, to string) error {
	if fails, err := c.next(); fails || err != nil {
		return errors.Join(err, errFails)
	}
	i := c.shown[from]
	if i == nil {
		return fs.ErrNotExist
	}
	c.change(rename{name: to, file: i, from: from})
	return nil
}

func (c *calls) SyncDir() error {
	if fails, err := c.next(); fails || err != nil {
		return errors.Join(err, errFails)
	}
	for _, change := range c.changes {
		change.apply(c.durable)
	}
	c.changes = nil
	return nil
}

func (c *calls) Names(name string, f store.File) (bool, error) {
	i := c.shown[name]
	if i == nil {
		return false, fs.ErrNotExist
	}
	return i == f.(*file).inode, nil
}

func (c *calls) Size(f store.File) (int64, error) { return int64(len(f.(*file).inode.data)), nil }

// file is an open file.
type file struct {
	inode *inode
	calls *calls
	read  int
}

func (f *file) Read(b []byte) (int, error) {
	if f.read >= len(f.inode.data) {
		return 0, io.EOF
	}
	n := copy(b, f.inode.data[f.read:])
	f.read += n
	return n, nil
}

func (f *file) Write(b []byte) (int, error) {
	fails, err := f.calls.next()
	if err != nil {
		return 0, err
	}
	if fails {
		b = b[:f.calls.rng.IntN(len(b))]
		err = syscall.ENOSPC
	}
	f.inode.data, f.inode.clean = append(slices.Clip(f.inode.data), b...), false
	return len(b), err
}

// Sync makes the file durable, unless an earlier sync failed: then the kernel already believes
// that the file is written.
func (f *file) Sync() error {
	fails, err := f.calls.next()
	switch {
	case err != nil:
		return err
	case fails:
		f.inode.lost, f.inode.clean = true, true
		return errFails
	case f.inode.lost && f.inode.clean:
		return nil
	}
	f.inode.synced, f.inode.clean, f.inode.lost = slices.Clone(f.inode.data), true, false
	return nil
}

func (f *file) Close() error { return nil }
