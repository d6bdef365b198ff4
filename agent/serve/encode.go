package serve

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"sync"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// The answer for one election is asked for far more often than anything else. So it is not
// built as an api.Election and encoded by reflection: it is written directly into a buffer
// that is used again, from the same judgement. A test compares both, byte for byte.

// answers is what all answers that are written directly share.
type answers struct {
	buffers sync.Pool // of *[]byte
	// Values of headers; they are never altered.
	json, noStore []string
}

func newAnswers() answers {
	return answers{
		buffers: sync.Pool{New: func() any { return new([]byte) }},
		json:    []string{"application/json"}, noStore: []string{"no-store"},
	}
}

// bufferKept is the capacity beyond which a buffer is not used again.
const bufferKept = 64 << 10

// buffer returns a buffer for an answer, which send sends.
func (a *answers) buffer() *[]byte { return a.buffers.Get().(*[]byte) }

// send answers with what the buffer was filled with, and a newline.
func (a *answers) send(w http.ResponseWriter, buffer *[]byte) {
	data := append(*buffer, '\n')
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = a.json, a.noStore
	if len(data) > unannounced {
		h.Set("Content-Length", strconv.Itoa(len(data)))
	}
	_, _ = w.Write(data) // the client may have gone; the data is copied
	if cap(data) <= bufferKept {
		*buffer = data[:0]
		a.buffers.Put(buffer)
	}
}

// Up to unannounced bytes, net/http itself adds an answer's length, which is cheaper.
const unannounced = 2048

// appendElection appends what Election returns, in JSON.
func (p *Picture) appendElection(b []byte, c *elector.ContestStatus, now election.Instant, index uint64) []byte {
	e, leader := p.judge(c, now)
	b = appendString(append(b, `{"election":`...), e.Election)
	b = appendString(append(b, `,"state":`...), e.State)
	b = strconv.AppendBool(append(b, `,"is_leader":`...), e.IsLeader)
	b = append(b, `,"leader":`...)
	if leader != "" {
		b = p.appendLeader(b, leader)
	} else {
		b = append(b, `null`...)
	}
	b = strconv.AppendUint(append(b, `,"term":`...), e.Term, 10)
	b = appendString(append(b, `,"authority":`...), e.Authority)
	b = strconv.AppendInt(append(b, `,"lease_remaining_ms":`...), e.LeaseRemainingMS, 10)
	b = strconv.AppendInt(append(b, `,"valid_until_boottime_ns":`...), e.ValidUntilBoottimeNS, 10)
	b = strconv.AppendInt(append(b, `,"view_age_ms":`...), e.ViewAgeMS, 10)
	b = append(b, `,"candidates":[`...)
	for i, id := range c.Candidates {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, p.name(id))
	}
	b = strconv.AppendUint(append(b, `],"index":`...), index, 10)
	return append(b, '}')
}

// appendElections appends api.Elections in JSON.
func (p *Picture) appendElections(b []byte, now election.Instant, index func(string) uint64) []byte {
	b = append(b, `{"elections":[`...)
	all := p.contests()
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.appendElection(b, all[i], now, index(string(all[i].Election)))
	}
	return append(b, `]}`...)
}

func (p *Picture) appendLeader(b []byte, id election.PeerID) []byte {
	b = appendString(append(b, `{"name":`...), p.name(id))
	b = appendString(append(b, `,"id":`...), string(id))
	b = append(b, `,"addr":"`...)
	if m, ok := p.member(id); ok {
		b = appendAddress(b, m.PeerAddr)
	}
	return append(b, `"}`...)
}

func appendAddress(b []byte, a netip.AddrPort) []byte {
	if !a.IsValid() {
		return b
	}
	if a.Addr().Zone() != "" { // whatever the zone is made of
		quoted := appendString(nil, a.String())
		return append(b, quoted[1:len(quoted)-1]...)
	}
	return a.AppendTo(b)
}

// appendString appends a string as JSON. Names, IDs and states need no escape; strings that do
// are left to the library.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
