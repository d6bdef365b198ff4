package transport

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/golden"
)

// The next versions must talk to this one: a connection begins with these frames.
func TestTheFramesOfAHandshakeAreWhatTheyWere(t *testing.T) {
	hello := Hello{Lineage: 0xb007, Name: "ann", Cluster: "test", Version: "0.2.0", Algorithm: "bully", Quorum: true,
		Heartbeat: 200 * time.Millisecond, Lease: 1200 * time.Millisecond}
	later := hello
	later.Run, later.Level = 0x2b2b, 1
	var lines strings.Builder
	for _, frame := range []struct {
		name string
		v    any
	}{
		{"hello", hello.frame(0)},
		{"hello-while-connected", hello.frame(0xb0b)},
		{"hello-of-a-later-life", later.frame(0)},
		{"accepted", verdictOf(nil)},
		{"refused", verdictOf(errors.New("another cluster"))},
	} {
		var sent bytes.Buffer
		w := &wire{w: bufio.NewWriter(&sent), r: bufio.NewReader(&sent)}
		if err := sendCBOR(w, frame.v); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s %x\n", frame.name, sent.Bytes())
		body, err := w.read(maxHello)
		if err != nil {
			t.Fatal(err)
		}
		switch want := frame.v.(type) {
		case helloFrame:
			var got helloFrame
			if err := frames().Unmarshal(body, &got); err != nil || !reflect.DeepEqual(got, want) || judge(got, func(Hello) error { return nil }) != nil {
				t.Errorf("%s: read as %+v, %v", frame.name, got, err)
			}
		case verdictFrame:
			var got verdictFrame
			if err := frames().Unmarshal(body, &got); err != nil || got != want {
				t.Errorf("%s: read as %+v, %v", frame.name, got, err)
			}
		}
	}
	fmt.Fprintf(&lines, "protocol %s %d\n", protocolID, protocolVersion)
	golden.Check(t, "handshake.golden", lines.String())
}
