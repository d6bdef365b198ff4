package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/netns"
)

func threeHosts() *world {
	return &world{config: hosts.Config{Agents: 3}, afflicted: map[string]map[string]bool{}}
}

func TestWordsMeanHosts(t *testing.T) {
	w := threeHosts()
	w.ail("beta", "cut")
	w.ail("beta", "freeze")
	for words, want := range map[string]string{
		"all": "alpha beta gamma", "rest": "alpha gamma", "gamma alpha": "alpha gamma",
		"alpha,beta alpha": "alpha beta", "rest beta": "alpha beta gamma",
	} {
		got, err := w.names(strings.Fields(words))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q means %v, %v; want %s", words, got, err, want)
		}
	}
	w.heal("beta", "cut")
	if got, _ := w.names([]string{"rest"}); len(got) != 2 {
		t.Errorf("with one of two ailments gone rest is %v, want it without beta", got)
	}
	w.heal("beta", "freeze", "crash")
	if got, _ := w.names([]string{"rest"}); len(got) != 3 {
		t.Errorf("with both gone rest is %v, want all", got)
	}
}

func TestSidesOfACut(t *testing.T) {
	pairs := func(words string) string {
		s, err := threeHosts().split(strings.Fields(words))
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, p := range s.pairs() {
			all = append(all, p[0][:1]+">"+p[1][:1])
		}
		return strings.Join(all, " ")
	}
	for words, want := range map[string]string{
		"alpha":              "a>b b>a a>g g>a",
		"alpha -> rest":      "a>b a>g",
		"alpha <- rest":      "b>a g>a",
		"alpha beta | gamma": "a>g g>a b>g g>b",
		"beta -> gamma":      "b>g",
		"alpha | all":        "a host is on both sides",
		"alpha ->":           "no host is named",
	} {
		if got := pairs(words); got != want {
			t.Errorf("cut %s: %s, want %s", words, got, want)
		}
	}
}

func TestLinksAreRead(t *testing.T) {
	got, err := linkOf(strings.Fields("delay=100ms jitter=10ms loss=5% duplicate=0.01 reorder=1% rate=1000"))
	want := netns.Link{Delay: 100 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.05, Duplicate: 0.01, Reorder: 0.01, Rate: 1000}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, word := range []string{"delay", "delay=", "delay=-1s", "delay=2h", "loss=2", "rate=-5", "rate=fast"} {
		if l, err := linkOf([]string{word}); err == nil {
			t.Errorf("%s is read as %+v", word, l)
		}
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string][3]bool{ // of 99, 100, 101 ms
		"100ms": {false, true, false}, "= 100ms": {false, true, false}, "<= 100ms": {true, true, false},
		"< 100ms": {true, false, false}, ">= 100ms": {false, true, true}, "> 100ms": {false, false, true},
	} {
		l, err := limitOf(strings.Fields(text))
		if err != nil {
			t.Error(err)
			continue
		}
		got := [3]bool{l.holds(99e6), l.holds(100e6), l.holds(101e6)}
		if got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "about 3", "3 4 5", "many", "=< 3"} {
		if l, err := limitOf(strings.Fields(text)); err == nil {
			t.Errorf("%q is read as %+v", text, l)
		}
	}
}

// pairs are the ordered pairs of hosts, from and to, that are meant.
func (s sides) pairs() [][2]string {
	var all [][2]string
	for _, a := range s.a {
		for _, b := range s.b {
			if s.direction != hosts.Back {
				all = append(all, [2]string{a, b})
			}
			if s.direction != hosts.Forth {
				all = append(all, [2]string{b, a})
			}
		}
	}
	return all
}
