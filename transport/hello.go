package transport

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

// protocolVersion is the version of everything that is sent once the stream is open.
// Agents of different versions don't talk to each other.
const protocolVersion = 1

const (
	maxHello  = 4 << 10 // how many bytes a hello or a verdict may have
	maxReason = 1 << 10 // how many bytes a refusal's text may have
	maxName   = 63
	maxText   = 128 // how many bytes a cluster, version or algorithm may have
)

// Level is the feature level of this version; 0.2.0 has level 0. A field or message that was added with
// a level is used only with peers of that level or higher.
const Level = election.Level

// Hello is what an agent sends about itself before anything else.
type Hello struct {
	Lineage   election.LineageID `cbor:"2,keyasint"`            // not 0
	Run       election.RunID     `cbor:"11,keyasint,omitempty"` // 0: the first run of the lineage
	Level     uint64             `cbor:"13,keyasint,omitempty"` // the feature level; New sets it to Level
	Name      string             `cbor:"3,keyasint"`            // a name that election.ValidName accepts
	Cluster   string             `cbor:"4,keyasint"`
	Version   string             `cbor:"5,keyasint"` // the version of the program
	Algorithm string             `cbor:"6,keyasint"`
	Quorum    bool               `cbor:"7,keyasint"`
	Heartbeat time.Duration      `cbor:"8,keyasint"`
	Lease     time.Duration      `cbor:"9,keyasint"`
	// Follows came with level 2: the sender takes algorithm and lease from its roster, not from this
	// hello.
	Follows bool `cbor:"14,keyasint,omitempty"`
}

// Validate returns what is wrong with the hello by itself, without comparing it with the receiver's
// hello.
func (h Hello) Validate() error {
	switch {
	case h.Lineage == 0:
		return errors.New("validate hello: lineage ID is 0")
	case !election.ValidName(h.Name):
		return fmt.Errorf("validate hello: name %.*q is not valid", maxName, h.Name)
	case len(h.Cluster) > maxText || len(h.Version) > maxText || len(h.Algorithm) > maxText:
		return fmt.Errorf("validate hello: a text is over the limit of %d bytes", maxText)
	case h.Heartbeat < 0 || h.Lease < 0:
		return errors.New("validate hello: negative duration")
	}
	return nil
}

// helloFrame is the first frame in each direction. 0.3.0 also sends a hash, with key 12, which this version
// ignores.
type helloFrame struct {
	Protocol uint64 `cbor:"1,keyasint"`
	// Held is the receiver's run that the sender still counts as connected, 0 if there is none. If it is
	// not 0, the new connection only replaces a broken one.
	Held election.RunID `cbor:"10,keyasint,omitempty"`
	Hello
	Pass
}

// verdictFrame is the second frame in each direction.
type verdictFrame struct {
	Accepted bool   `cbor:"1,keyasint"`
	Reason   string `cbor:"2,keyasint,omitempty"`
}

// frame omits the run of a lineage's first life, since 0.2.0 sends none and does not know that field.
func (h Hello) frame(held election.RunID) helloFrame {
	if !h.isLater() {
		h.Run = 0
	}
	return helloFrame{Protocol: protocolVersion, Held: held, Hello: h}
}

func (f helloFrame) hello() Hello {
	f.Run = cmp.Or(f.Run, election.RunID(f.Lineage))
	return f.Hello
}

// greeting returns the hello that this agent sends now.
func (t *Transport) greeting() Hello {
	h := t.hello
	h.Follows = t.follows != nil && t.follows()
	return h
}

// isLater reports whether the sender is a later life of its lineage, not the first.
func (h Hello) isLater() bool { return h.Run != 0 && uint64(h.Run) != uint64(h.Lineage) }

// refusal is why two peers that reached each other are not connected.
type refusal struct {
	byPeer bool
	name   string // of the peer
	err    error
}

func (r *refusal) Error() string {
	if r.byPeer {
		return "refused by the peer: " + r.err.Error()
	}
	return "peer refused: " + r.err.Error()
}

func (r *refusal) Unwrap() error { return r.err }

// greet exchanges hellos and verdicts, and returns the peer's hello. The error is nil only if both sides
// accepted, and a *refusal if one did not. Both sides send the same frames in the same order. If that
// takes too long, the caller closes the connection.
func greet(w *wire, ours helloFrame, accept func(Hello) error) (helloFrame, error) {
	if err := sendCBOR(w, ours); err != nil {
		return helloFrame{}, fmt.Errorf("send hello: %w", err)
	}
	var theirs helloFrame
	body, err := w.read(maxHello)
	if err != nil {
		return helloFrame{}, fmt.Errorf("receive hello: %w", err)
	}
	verdict := frames().Unmarshal(body, &theirs)
	if verdict != nil {
		verdict = fmt.Errorf("invalid hello: %w", verdict)
	} else {
		verdict = judge(theirs, accept)
	}
	if err := sendCBOR(w, verdictOf(verdict)); err != nil {
		return theirs, fmt.Errorf("send verdict: %w", err)
	}
	var said verdictFrame
	body, err = w.read(maxHello)
	if err == nil {
		err = frames().Unmarshal(body, &said)
	}
	switch name := clip(theirs.Name, maxName); {
	case verdict != nil: // this agent refuses, whatever the peer's verdict is
		return theirs, &refusal{name: name, err: verdict}
	case err != nil:
		return theirs, fmt.Errorf("receive verdict: %w", err)
	case !said.Accepted:
		return theirs, &refusal{name: name, byPeer: true, err: errors.New(clip(said.Reason, maxReason))}
	}
	return theirs, nil
}

func judge(theirs helloFrame, accept func(Hello) error) error {
	if theirs.Protocol != protocolVersion {
		return fmt.Errorf("protocol version %d, expected %d", theirs.Protocol, protocolVersion)
	}
	if err := theirs.hello().Validate(); err != nil {
		return err
	}
	return accept(theirs.hello())
}

func verdictOf(err error) verdictFrame {
	if err == nil {
		return verdictFrame{Accepted: true}
	}
	return verdictFrame{Reason: clip(err.Error(), maxReason)}
}

func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}

// partTimeout is how long an agent waits, after a refusal, for the other side to close its half.
const partTimeout = 500 * time.Millisecond

// part ends a stream after a refusal. If a side closed the connection at once, that would reset it, and
// the verdict might be lost. So each side first closes only its half, and waits until the other has
// closed its half too.
func part(w *wire) {
	if w.stream.SetDeadline(time.Now().Add(partTimeout)) == nil && w.stream.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(w.r, maxHello)) // what is read does not matter: this waits for the stream's end
	}
	_ = w.conn.Close() // nothing can be lost any more
}

// frames is the format of the handshake's frames. Unknown fields are ignored, so that agents of different
// protocol versions can still read why the other side refuses.
func frames() codec.Format { return codec.NewFormat(16, 64) }

func sendCBOR(w *wire, v any) error {
	body, err := frames().Marshal(v)
	if err != nil {
		return err
	}
	return w.send(body)
}
