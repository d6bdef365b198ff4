package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// jobCommand: once NAME HOST KEY [for=TIME] [FLAG…], or cron NAME HOST ELECTION SPEC [for=TIME] [FLAG…]. It starts
// `doyen once` or `doyen cron` with a command that acts for that time.
func jobCommand(verb string, words int) command {
	const want = "want a name, a host, a key (of cron an election and a spec), and flags if you like"
	return takes(2+words, many, want, func(w *world, _ *testscript.TestScript, args []string) (string, error) {
		return "", w.launchJob(args[0], args[1], verb, args[2:2+words], args[2+words:])
	})
}

func (w *world) launchJob(name, host, verb string, what, flags []string) error {
	election, _, _ := strings.Cut(what[0], "/")
	lasts := 100 * time.Millisecond
	if len(flags) > 0 && strings.HasPrefix(flags[0], "for=") {
		var err error
		if lasts, err = timeOf(strings.TrimPrefix(flags[0], "for=")); err != nil {
			return err
		}
		flags = flags[1:]
	}
	return w.launch(name, host, election, func(p *lab.Program) *exec.Cmd {
		return exec.Command(w.o.Binary.Path, slices.Concat([]string{verb, "--socket", p.Host.Config().Socket}, flags, what,
			[]string{"--", actor.Path()}, actor.Job(p.Stamps, lasts))...)
	})
}

// startsQuantity: starts of KEY LIMIT. It is how often a job's command was started with this DOYEN_KEY. The name
// of a cron job means all its keys. It is an error if a start of a key has no higher term than the start before.
// The try must rise as well, but it begins again with 1 after a deletion.
func startsQuantity(w *world, of, _ string) (float64, string, error) {
	starts, _, saw, err := w.starts(of)
	return float64(starts), saw, err
}

// keysQuantity: keys of NAME LIMIT. It is how many different keys of a job were started.
func keysQuantity(w *world, of, _ string) (float64, string, error) {
	_, keys, saw, err := w.starts(of)
	return float64(keys), saw, err
}

func (w *world) starts(of string) (starts, keys int, saw string, err error) {
	all := map[string][]stamp.Stamp{}
	for _, p := range w.lab.Programs() {
		stamps, err := stamp.Read(p.Stamps)
		if err != nil {
			return 0, 0, "", err
		}
		for _, n := range stamps {
			if name, _, _ := strings.Cut(n.Key, "/"); n.Key == of || name == of {
				all[n.Key] = append(all[n.Key], n)
			}
		}
	}
	var described []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		stamps := all[key]
		slices.SortFunc(stamps, func(a, b stamp.Stamp) int { return cmp.Compare(a.First, b.First) })
		for i, n := range stamps {
			starts++
			described = append(described, fmt.Sprintf("%s in term %d, try %d, ended: %t", key, n.Term, n.Try, n.Ended))
			if i > 0 && (n.Term <= stamps[i-1].Term || n.Try > 1 && n.Try <= stamps[i-1].Try) {
				err = errors.New("two starts without a higher term and try")
			}
		}
	}
	return starts, len(all), fmt.Sprintf("%d starts: %s", starts, strings.Join(described, "; ")), err
}

// tearWords: tear-words HOST… end|middle. It damages the log of words of hosts that are down: end cuts the last
// record short, as a crash may; middle changes a byte in the middle of the log.
func tearWords(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if n := len(args) - 1; n < 1 || args[n] != "end" && args[n] != "middle" {
		return "", errors.New("want hosts, and then end or middle")
	}
	where := args[len(args)-1]
	targets, err := w.hostsOf(args[:len(args)-1])
	if err != nil {
		return "", err
	}
	for _, h := range targets {
		path := filepath.Join(h.Config().DataDir, "words")
		log, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if where == "end" {
			log = log[:len(log)-tornOff]
		} else {
			log[len(log)/2] ^= 1
		}
		w.acted = boottime.Now()
		if h.Status() != hosts.Down {
			return "", fmt.Errorf("%s is not down", h.Name())
		}
		if err := os.WriteFile(path, log, 0o600); err != nil {
			return "", err
		}
		w.lab.Note(observe.Fault{What: "tear-words", Where: []string{h.Name()}, Detail: where, From: w.acted, To: w.acted})
	}
	return "", nil
}

// tornOff is how many bytes of the last record are lost. Every record is longer.
const tornOff = 7
