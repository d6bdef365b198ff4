package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// command carries out one word of the language. Its result saw describes what it saw, for the recording.
type command func(w *world, ts *testscript.TestScript, args []string) (saw string, err error)

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	wrapped := map[string]func(*testscript.TestScript, bool, []string){}
	for name, c := range map[string]command{
		"hosts": before(fmt.Sprintf("a number from 1 to %d", maxHosts), hostCount), "profile": before("local, lan or wan", profile),
		"algorithm": before("bully or ring", algorithm), "quorum": before("on or off", quorum), "set": setCommand, "disks": before("faulty", disks),
		"start": forHosts(startAll), "restart": forHosts(restartAll), "crash": crashCommand, "terminate": begin(hosts.Terminate),
		"freeze": either((*lab.Program).Freeze, begin(hosts.Freeze)), "thaw": either((*lab.Program).Thaw, end(hosts.Freeze)), "wipe": begin(hosts.Wipe),
		"cut": cutCommand, "link": linkCommand, "flap": flapCommand, "heal": forHosts(healLinks), "unplug": begin(hosts.Unplug), "plug": end(hosts.Unplug),
		"fill-disk": begin(hosts.FullDisk), "free-disk": end(hosts.FullDisk), "slow-disk": measured("a time such as 500ms, stuck or off", slowDisk),
		"starve": begin(hosts.Starve), "feed": end(hosts.Starve), "crowd": measured("a number of busy processes, 0 for none", crowd), "clock": measured("a rate such as 1.009", setClock), "wall-clock": measured("a time such as 60s", setWallClock),
		"leader": started(leaderCommand), "follower": started(followerCommand), "doyen": doyenCommand,
		"expect": started(takes(1, many, "what? The conditions are in docs/testbed.md", expectCommand)),
		"hold":   started(takes(2, many, "want a time and a condition, as in: hold 2s agree", holdCommand)),
		"elapse": takes(1, 1, "want a time", elapseCommand), "mark": started(takes(0, 0, "it takes no words", markCommand)), "show": started(showCommand),
		"install": takes(2, many, "want hosts and then former or present", installCommand), "lose-program": begin(hosts.LoseProgram),
		"kill-life": lifeCommand("kill-life", syscall.SIGKILL), "hang-life": lifeCommand("hang-life", syscall.SIGSTOP),
		"lose-record": forHosts(loseRecords), "swap-records": forHosts(swapRecords), "other-boot": begin(hosts.OtherBoot),
		"program": takes(3, many, "want a name, a host and an election", programCommand),
		"run":     takes(3, many, "want a name, a host, an election, and flags of doyen run if you like", runCommand),
		"hook":    takes(3, 3, "want a name, a host and an election", hookCommand),
		"once":    jobCommand("once", 1), "cron": jobCommand("cron", 2), "tear-words": tearWords, "attack": attackCommand,
	} {
		wrapped[name] = recorded(name, c)
	}
	return wrapped
}

const many = math.MaxInt

// takes makes a command fail if it gets fewer than least words or more than most.
func takes(least, most int, want string, c command) command {
	return func(w *world, ts *testscript.TestScript, args []string) (string, error) {
		if len(args) < least || len(args) > most {
			return "", errors.New(want)
		}
		return c(w, ts, args)
	}
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

// recorded records the step. It turns an error into the script's failure, and adds what was seen of
// the agents.
func recorded(name string, c command) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		w := worldOf(ts)
		step := observe.Step{Text: strings.Join(append([]string{name}, args...), " "), From: boottime.Now()}
		if neg && name != "doyen" {
			w.failure = "! " + step.Text
			ts.Fatalf("! %s: ! is for doyen and testscript's own commands; the expectations have their own words for no", name)
		}
		if neg {
			args = append([]string{"!"}, args...)
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
		w.failure = fmt.Sprintf("%s: %v", step.Text, err)
		if w.lab == nil {
			ts.Fatalf("%s: %v", name, err)
		}
		ts.Fatalf("%s: %v\n%s%s", step.Text, err, w.alarm(), strings.TrimRight(w.lab.Account(recent), "\n"))
	}
}

// alarm describes overlaps, so that a failure of another kind does not hide them.
func (w *world) alarm() string {
	all, err := w.overlaps("")
	if err != nil || len(all) == 0 || !w.config.Quorum {
		return ""
	}
	return "TWO LEADERS AT ONCE: " + describeOverlaps(all) + "\n"
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

// names resolves words that mean hosts: a name, all, running, or rest (hosts without a fault
// now). Commas may separate names.
func (w *world) names(words []string) ([]string, error) {
	var found []string
	for _, word := range words {
		for _, part := range strings.Split(word, ",") {
			these, err := w.named(part)
			if err != nil {
				return nil, err
			}
			found = append(found, these...)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no host is named")
	}
	// The result is in the order of the cluster: hosts with a vote come first.
	return slices.DeleteFunc(slices.Clone(w.config.Names()), func(name string) bool { return !slices.Contains(found, name) }), nil
}

func (w *world) named(word string) ([]string, error) {
	all := w.config.Names()
	switch word {
	case "all":
		return all, nil
	case "rest":
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return len(w.afflicted[name]) > 0 }), nil
	case "running":
		return w.running(), nil
	case "":
		return nil, errors.New("an empty name: is a variable not set?")
	}
	if !slices.Contains(all, word) {
		return nil, fmt.Errorf("there is no host %q; there are %s, and the words all, rest and running", word, hosts.Short(all))
	}
	return []string{word}, nil
}

// running returns the hosts whose agent can answer.
func (w *world) running() []string {
	if w.lab == nil {
		return nil
	}
	return w.lab.Running()
}

// hostsOf resolves words to hosts. It lays out the cluster first, if necessary.
func (w *world) hostsOf(words []string) ([]*hosts.Host, error) {
	names, err := w.names(words)
	if err != nil {
		return nil, err
	}
	if err := w.ready(); err != nil {
		return nil, err
	}
	var found []*hosts.Host
	for _, name := range names {
		h, ok := w.lab.Cluster.Host(name)
		if !ok {
			return nil, fmt.Errorf("host %s was not laid out", name)
		}
		found = append(found, h)
	}
	return found, nil
}

func (w *world) oneHost(word string) (*hosts.Host, error) {
	found, err := w.hostsOf([]string{word})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%q means %d hosts, want one", word, len(found))
	}
	return found[0], nil
}

// option removes "KEY VALUE" from the words. It finds the last KEY that has a value.
func option(words []string, key string) (value string, rest []string) {
	for i := len(words) - 2; i >= 0; i-- {
		if words[i] == key {
			return words[i+1], slices.Concat(words[:i], words[i+2:])
		}
	}
	return "", words
}

// duration removes "KEY TIME" from the words.
func duration(words []string, key string, usual time.Duration) (time.Duration, []string, error) {
	value, rest := option(words, key)
	if value == "" {
		return usual, words, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, nil, fmt.Errorf("%s %s: want a time such as 1.5s", key, value)
	}
	return d, rest, nil
}

// options splits the words before the first KEY=VALUE.
func options(words []string) (plain, pairs []string) {
	first := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "=") })
	if first < 0 {
		first = len(words)
	}
	return words[:first], words[first:]
}

// timeOf reads a time in a script.
func timeOf(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 || d > maxWithin {
		return 0, fmt.Errorf("%q: want a time such as 2s, at most an hour", word)
	}
	return d, nil
}

func pair(word string) (key, value string, err error) {
	key, value, ok := strings.Cut(word, "=")
	if !ok || key == "" || value == "" {
		return "", "", fmt.Errorf("%q: want KEY=VALUE", word)
	}
	return key, value, nil
}

func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%q: want a share such as 5%% or 0.05", text)
	}
	return f, nil
}

// doyenTimeout bounds one command of the product's command line.
const doyenTimeout = 30 * time.Second

// doyenCommand runs the product's command line with a host's socket: doyen HOST [exit=N] ARG….
// doyen must end with status N, by default 0. After ! it must end with a status other than 0. The
// script's next commands stdout and stderr apply to the output of doyen. With & at the end, doyen
// runs in the background until the script ends or doyenTimeout has passed.
func doyenCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	fails := len(args) > 0 && args[0] == "!"
	if fails {
		args = args[1:]
	}
	if len(args) < 2 {
		return "", errors.New("want a host and the arguments of doyen")
	}
	h, err := w.oneHost(args[0])
	if err != nil {
		return "", err
	}
	args = args[1:]
	want := -1
	if key, value, err := pair(args[0]); err == nil && key == "exit" {
		if want, err = strconv.Atoi(value); err != nil {
			return "", fmt.Errorf("%s: want a number", args[0])
		}
		args = args[1:]
	}
	ctx, cancel := context.WithTimeout(w.ctx, doyenTimeout)
	if args[len(args)-1] == "&" {
		ts.Defer(cancel)
		return w.background(w.doyen(ctx, h, args[:len(args)-1]))
	}
	defer cancel()
	cmd := w.doyen(ctx, h, args)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	w.acted = boottime.Now()
	err = cmd.Run()
	_, _ = ts.Stdout().Write(out.Bytes())
	_, _ = ts.Stderr().Write(errs.Bytes())
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return "", err
	}
	got := cmd.ProcessState.ExitCode()
	saw := fmt.Sprintf("exit %d after %s", got, boottime.Now().Sub(w.acted).Round(time.Millisecond))
	switch {
	case want >= 0 && got != want:
		return saw, fmt.Errorf("want exit %d; instead: %s\n%s%s", want, saw, &out, &errs)
	case want < 0 && fails != (got != 0):
		return saw, fmt.Errorf("it ended with %s\n%s%s", saw, &out, &errs)
	}
	return saw, nil
}

func (w *world) doyen(ctx context.Context, h *hosts.Host, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.o.Binary.Path, args...)
	cmd.Env = append(os.Environ(), "DOYEN_SOCKET="+h.Config().Socket)
	return cmd
}

// background starts a command without waiting for its end. The command's context ends it.
func (w *world) background(cmd *exec.Cmd) (string, error) {
	w.acted = boottime.Now()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go func() { _ = cmd.Wait() }()
	return "started", nil
}
