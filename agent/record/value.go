package record

import "sync/atomic"

// memory is the mapped file in words.
type memory []uint64

// value is a place whose content is replaced as a whole: a commit word and two copies.
type value struct {
	at     int // of its commit word
	room   int // how many words a copy has room for, without the check
	commit uint64
	seed   uint64 // of its check
}

// newValue returns a value that was never written.
func newValue(at, room int, seed uint64) value {
	return value{at: at, room: room, seed: mix(seed, uint64(at))}
}

// copyAt is where the copy is that a commit word makes the current one.
func (v *value) copyAt(commit uint64) int {
	if commit>>16%2 == 0 {
		return v.at + 1
	}
	return v.at + 2 + v.room
}

// store replaces the content. The other copy, and so the former content, stays whole until the
// one store of the commit word: a process that dies before that has written nothing.
func (v *value) store(m memory, content []uint64) {
	next := (v.commit>>16+1)<<16 | uint64(len(content))
	at := v.copyAt(next)
	sum, to := mix(v.seed, next), m[at+1:][:len(content)]
	for i, w := range content {
		to[i] = w
		sum = mix(sum, w)
	}
	m[at] = sum
	atomic.StoreUint64(&m[v.at], next)
	v.commit = next
}

// load returns the content, or false if it is damaged or was never written. It reads the
// content into the room given.
func (v *value) load(m memory, room []uint64) ([]uint64, bool) {
	commit := atomic.LoadUint64(&m[v.at])
	n := int(commit & 0xffff)
	if commit>>16 == 0 || n > v.room {
		return nil, false
	}
	from := m[v.copyAt(commit):]
	content := room[:n]
	for i := range content {
		content[i] = from[i+1]
	}
	if mixAll(mix(v.seed, commit), content) != from[0] {
		return nil, false
	}
	v.commit = commit
	return content, true
}
