package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/live"
)

var three = []string{"alpha", "beta", "gamma"}

func TestParseScript(t *testing.T) {
	steps, err := live.ParseScript(" start all@6s, kill leader@3s,\tstop  beta @ 1.5s, resign leader@6s,", three)
	if err != nil {
		t.Fatal(err)
	}
	want := "[stop beta@1.5s kill leader@3s start all@6s resign leader@6s]"
	if got := fmt.Sprint(steps); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if steps[0].At != 1500*time.Millisecond {
		t.Errorf("the first step is at %s", steps[0].At)
	}
}

func TestParseScriptSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "no step",
		" , ,":                                  "no step",
		"kill leader":                           "VERB TARGET@TIME",
		"kill@3s":                               "VERB TARGET@TIME",
		"kill the leader@3s":                    "VERB TARGET@TIME",
		"murder leader@3s":                      `unknown verb "murder": use kill, stop`,
		"kill delta@3s":                         `unknown target "delta": use leader, follower, all, alpha, beta, gamma`,
		"kill leader@soon":                      `"soon" is not a time`,
		"kill leader@-1s":                       "is not a time from 0s",
		"kill leader@3":                         "is not a time",
		"kill leader@25h":                       "to 24h",
		"kill leader@1s,x":                      `"x": a step is`,
		"kill leader@1s@2s":                     "is not a time",
		strings.Repeat("kill leader@1s,", 1001): "more than 1000",
	} {
		if _, err := live.ParseScript(text, three); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// Whatever is written, it is understood or refused.
func FuzzParseScript(f *testing.F) {
	f.Add("kill leader@3s,start all@6s")
	f.Add("@,@@")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := live.ParseScript(text, three)
		if err != nil {
			return
		}
		for i, s := range steps {
			if s.At < 0 || i > 0 && s.At < steps[i-1].At {
				t.Errorf("%q: %v is out of order", text, steps)
			}
		}
	})
}
