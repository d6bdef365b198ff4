package runner

import (
	"testing"
)

// A time at which nothing can be done must not wake the loop again and again.
func TestWhatIsNotExpectedWakesNobody(t *testing.T) {
	for name, r := range map[string]*runner{
		"no watchdog":         {progress: progress{dueAt: never}},
		"the run ends":        {ending: true, progress: progress{dueAt: never}},
		"the command is gone": {progress: progress{dueAt: 1}},
	} {
		if at := r.wakeAt(2); at != never {
			t.Errorf("%s: it wakes at %d", name, at)
		}
	}
	r := &runner{Config: ofTest(), progress: progress{dueAt: 1}, state: stopping, until: never - 1, killAt: never}
	if at := r.wakeAt(2); at < 2 {
		t.Errorf("while the command is stopped it wakes at %d", at)
	}
}
