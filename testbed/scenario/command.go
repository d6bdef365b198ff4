package scenario

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// command is one word of the language. What it saw is recorded with its line.
type command func(w *world, ts *testscript.TestScript, args []string) (saw string, err error)

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	wrapped := map[string]func(*testscript.TestScript, bool, []string){}
	for name, c := range map[string]command{
		"hosts": before(fmt.Sprintf("a number from 1 to %d", maxHosts), hostCount), "profile": before("local, lan or wan", profile),
		"algorithm": before("bully or ring", algorithm), "quorum": before("on or off", quorum), "set": setCommand, "disks": before("faulty", disks),
		"start": startCommand, "restart": restartCommand, "crash": crashCommand, "terminate": begin(hosts.Terminate),
		"freeze": either((*lab.Program).Freeze, begin(hosts.Freeze)), "thaw": either((*lab.Program).Thaw, end(hosts.Freeze)), "wipe": begin(hosts.Wipe),
		"cut": cutCommand, "link": linkCommand, "flap": flapCommand, "heal": healCommand, "unplug": begin(hosts.Unplug), "plug": end(hosts.Unplug),
		"fill-disk": begin(hosts.FullDisk), "free-disk": end(hosts.FullDisk), "slow-disk": measured("a time such as 500ms, stuck or off", slowDisk),
		"starve": begin(hosts.Starve), "feed": end(hosts.Starve), "crowd": measured("a number of busy processes, 0 for none", crowd), "limit-memory": measured("a number of megabytes, 0 for no limit", limitMemory), "clock": measured("a rate such as 1.009", setClock),
		"leader": started(leaderCommand), "follower": started(followerCommand), "doyen": doyenCommand,
		"expect": started(expectCommand), "hold": started(holdCommand), "elapse": elapseCommand, "mark": started(markCommand), "show": started(showCommand),
		"install": installCommand, "lose-program": begin(hosts.LoseProgram),
		"kill-life": lifeCommand("kill-life", syscall.SIGKILL), "hang-life": lifeCommand("hang-life", syscall.SIGSTOP),
		"lose-record": recordCommand("lose-record", os.Remove), "swap-records": swapRecords, "other-boot": begin(hosts.OtherBoot),
		"program": programCommand, "run": runCommand, "hook": hookCommand, "attack": attackCommand,
	} {
		wrapped[name] = wrap(name, c)
	}
	return wrapped
}

// started makes a command fail if no host was started.
func started(c command) command {
	return func(w *world, ts *testscript.TestScript, args []string) (string, error) {
		if w.lab == nil {
			return "", errors.New("no host was started")
		}
		return c(w, ts, args)
	}
}

// wrap notes the step. It turns an error into the script's failure, with what was seen and
// where the logs are.
func wrap(name string, c command) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		w := worldOf(ts)
		step := observe.Step{Line: w.lineOf(name), Text: strings.Join(append([]string{name}, args...), " "), From: boottime.Now()}
		if neg {
			switch name {
			case "doyen":
				args = append([]string{"!"}, args...)
			default:
				w.failure = fmt.Sprintf("line %d: ! %s", step.Line, step.Text)
				ts.Fatalf("! %s: ! is for doyen and testscript's own commands; the expectations have their own words for no", name)
			}
		}
		saw, err := c(w, ts, args)
		step.To, step.Saw = boottime.Now(), saw
		w.steps = append(w.steps, step)
		if saw != "" {
			ts.Logf("%s", saw)
		}
		if err == nil {
			return
		}
		w.failure = fmt.Sprintf("line %d: %s: %v", step.Line, step.Text, err)
		if w.lab == nil {
			ts.Fatalf("%s: %v", name, err)
		}
		ts.Fatalf("%s: %v\n%s%s", step.Text, err, w.alarm(), strings.TrimRight(w.lab.Account(recent), "\n"))
	}
}

// alarm reports overlaps, so that a failure of another kind does not hide them.
func (w *world) alarm() string {
	all, err := w.overlaps("")
	if err != nil || len(all) == 0 || !w.config.Quorum {
		return ""
	}
	return "TWO LEADERS AT ONCE: " + describeOverlaps(all) + "\n"
}

type scriptLine struct {
	number int
	word   string
}

func scriptLines(text string) []scriptLine {
	var all []scriptLine
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(line, "-- ") {
			break // the script's files follow
		}
		words := strings.Fields(line)
		for len(words) > 0 && (words[0] == "!" || strings.HasPrefix(words[0], "[")) {
			words = words[1:]
		}
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			all = append(all, scriptLine{number, words[0]})
		}
	}
	return all
}

// lineOf returns the number of the line that runs now. A script has no loops, so it is the next
// line that starts with the word.
func (w *world) lineOf(word string) int {
	for i, l := range w.lines {
		if l.word == word {
			w.lines = w.lines[i+1:]
			return l.number
		}
	}
	return 0
}

func conditionOf(w *world, name string) (bool, error) {
	switch name {
	case "long":
		return w.o.Long, nil
	case "network":
		return w.noNet == nil, nil
	case "former":
		_, err := hosts.FindFormer(w.ctx)
		return err == nil, nil
	}
	return false, fmt.Errorf("the conditions are long, network and former, and testscript's own")
}
