package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/internal/base/each"
)

const (
	wordsFile  = "words"
	wordsMagic = "doyen-words 1 "

	// A log that is larger than minLog, and many times larger than the words in it, is rewritten.
	minLog    = 256 << 10
	manyTimes = 4
	maxLog    = 64 << 20 // bytes; a start refuses a larger log
)

// words is the log of the words of elections. It begins with a line that names the agent, and has
// one record for each write:
//
//	length     4 bytes  big endian, of the body
//	checksums  8 bytes  CRC-32C of the length, and of the body
//	body       CBOR     codec.EncodeWords
//
// A start, and the first write after an error, make a new file. So a record that was cut short is never
// followed by another one.
//
// Invariant: file is the one that had the log's name when this agent last read or wrote the log. If whole
// is set, the file holds all words, they are durable, and no cut record follows them.
type words struct {
	files Files
	peer  election.PeerID
	file  File // nil: there is none
	whole bool
	sound bool // size is the true size of the file: no write of this agent to it has failed
	size  int

	writes uint64 // the number of the write in the newest record
	words  map[election.Name]election.Word
}

// open reads the log if the state shows that there are words. Records of a former process run may not be on disk, and
// a sync of the old file may succeed without a write. So open writes the log again, as a new file. If the disk is full,
// the agent starts all the same, and has to write the words before anything depends on them (Unsynced). If the
// state shows no words, open ignores any log: none of its words has been acknowledged.
func (w *words) open(s *election.State) error {
	w.peer = s.Peer
	if !s.KeepsWords {
		return nil
	}
	f, err := w.files.Open(wordsFile)
	if err != nil {
		return lostWords(cause(err))
	}
	w.file = f
	data, err := readAll(f, wordsFile, maxLog+1)
	if err != nil {
		return err
	}
	w.size = len(data)
	switch err := w.replay(data); {
	case err != nil:
		return lostWords(err.Error())
	case len(w.words) == 0: // a log gets its name only with words in it
		return lostWords("it has no whole record")
	case w.size > maxLog:
		return lostWords(fmt.Sprintf("it has more than %d bytes", maxLog))
	}
	w.sound = true
	err = w.rewrite()
	if s.Unsynced = errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT); err != nil && !s.Unsynced {
		return unsynced(wordsFile, err)
	}
	s.Words, s.Writes = maps.Clone(w.words), max(s.Writes, w.writes)
	return nil
}

func lostWords(problem string) error {
	return &Error{Path: wordsFile, Problem: "can't be read, and what elections keep there are promises like those in the state: " + problem,
		Hint: "restore both files only from a copy that is not older; else follow \"A lost data directory\" in docs/operations.md"}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// recordHead is how many bytes of a record precede its body.
const recordHead = 12

// replay takes over all records of a log. It ignores a last record that a crash has cut short: that record was
// never acknowledged. Any damage before the last record is an error.
func (w *words) replay(log []byte) error {
	rest, ours := bytes.CutPrefix(log, []byte(wordsMagic+string(w.peer)+"\n"))
	if !ours {
		return errors.New("it does not begin as the log of this agent")
	}
	for len(rest) >= recordHead {
		head := rest[:recordHead]
		rest = rest[recordHead:]
		length, whole := binary.BigEndian.Uint32(head), sumOf(head[:4]) == binary.BigEndian.Uint32(head[4:])
		if whole && uint64(length) > uint64(len(rest)) {
			return nil
		}
		var body []byte
		if whole {
			body, rest = rest[:length], rest[length:]
			whole = sumOf(body) == binary.BigEndian.Uint32(head[8:])
		}
		switch {
		case whole:
		case len(bytes.Trim(rest, "\x00")) == 0: // a file system may show zeros where nothing was written yet
			return nil
		default:
			return fmt.Errorf("a record is damaged, %d bytes before the end", len(rest))
		}
		decoded, err := codec.DecodeWords(body)
		if err != nil {
			return err
		}
		w.take(decoded.Writes, decoded.Words)
	}
	return nil
}

// take puts the words of a write into memory.
func (w *words) take(writes uint64, changed []election.NamedWord) {
	w.writes = writes
	for _, c := range changed {
		w.words[c.Election] = c.Word
	}
}

// write makes the changed words durable. After an error they may or may not be on disk, and the
// next write makes a new file: a file whose sync has failed is never synced again.
func (w *words) write(writes uint64, changed []election.NamedWord) error {
	w.take(writes, changed)
	if !w.whole || w.size > max(minLog, manyTimes*w.live()) {
		return w.rewrite()
	}
	record, err := w.record(changed)
	if err != nil {
		return err
	}
	w.whole, w.sound = false, false
	if _, err := w.file.Write(record); err != nil {
		return fmt.Errorf("write words: %w", err)
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("sync words: %w", err)
	}
	w.whole, w.sound, w.size = true, true, w.size+len(record)
	return nil
}

// rewrite replaces the log by one that has each word once.
func (w *words) rewrite() error {
	all := each.Of(slices.Sorted(maps.Keys(w.words)), func(e election.Name) election.NamedWord {
		return election.NamedWord{Election: e, Word: w.words[e]}
	})
	record, err := w.record(all)
	if err != nil {
		return err
	}
	log := append([]byte(wordsMagic+string(w.peer)+"\n"), record...)
	f, err := replaceFile(w.files, wordsFile, log)
	if f != nil {
		_ = w.close() // the old file was open only to keep its inode number
		w.file, w.sound = f, false
	}
	if err != nil {
		return fmt.Errorf("write words: %w", err)
	}
	w.whole, w.sound, w.size = true, true, len(log)
	return nil
}

// live is roughly how many bytes the words take.
func (w *words) live() int {
	n := 0
	for e, word := range w.words {
		n += len(e) + len(word.Text) + 64
	}
	return n
}

func (w *words) record(changed []election.NamedWord) ([]byte, error) {
	body, err := codec.EncodeWords(codec.WrittenWords{Writes: w.writes, Words: changed})
	if err != nil {
		return nil, err
	}
	record := make([]byte, recordHead, recordHead+len(body))
	binary.BigEndian.PutUint32(record, uint32(len(body)))
	binary.BigEndian.PutUint32(record[4:], sumOf(record[:4]))
	binary.BigEndian.PutUint32(record[8:], sumOf(body))
	return append(record, body...), nil
}

// ours reports whether no other process has replaced the log, or appended to it. A missing log is
// made again.
func (w *words) ours() (bool, error) {
	if w.file == nil {
		return true, nil
	}
	same, err := w.files.Names(wordsFile, w.file)
	if errors.Is(err, fs.ErrNotExist) {
		return true, w.rewrite()
	}
	if err != nil || !same || !w.sound {
		return same, err
	}
	size, err := w.files.Size(w.file)
	return size == int64(w.size), err
}

// drop forgets the words whose grants the state on disk has forgotten. They stay in the log until the next write
// makes a new file. If a start finds them there, it keeps them. This loses nothing, since their texts are empty.
func (w *words) drop(p election.Persist) {
	for _, c := range p.Words {
		if c.Word == (election.Word{}) {
			delete(w.words, c.Election)
			w.whole = false
		}
	}
	if !p.State.KeepsWords {
		_ = w.close() // the file was open only to keep its inode number
		clear(w.words)
	}
}

func (w *words) close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file, w.whole = nil, false
	return f.Close()
}
