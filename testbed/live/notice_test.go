package live

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

func TestHandOversAndCrashesAreCountedApart(t *testing.T) {
	s := &session{front: &plainFront{out: io.Discard}, leader: ruling{"alpha", 1}}
	for i, what := range []string{"crash", "resign", "crash", "terminate", "freeze"} {
		s.struck(observe.Fault{What: what, Where: []string{"alpha"}}, false)
		s.tookOver(time.Duration(i+1)*time.Second, s.hit.asked)
	}
	if got, want := s.summary(), []string{"takeovers: 3: 1.000 s 3.000 s 5.000 s", "hand-overs: 2: 2.000 s 4.000 s", "two leaders at once: 0 ms"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
