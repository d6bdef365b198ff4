package keeper

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/alarm"
	"github.com/doyen-election/doyen/internal/logger"
)

// leadsOn is how long the life of upgrading leads on.
const leadsOn = 10 * time.Millisecond

// upgrading is a keeper that turns into that of the program, which its life runs, soon after it has
// read a byte: once that life leads nothing.
func upgrading(program string) int {
	os.Args = []string{"fake", Word, "json,info", program, "fake", "life", "run"}
	k, err := newKeeper(program, os.Args[4:], handed{notify: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	k.logger = logger.New("json", logger.Level("info"), os.Stderr)
	k.step(alarm.Now())
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return 9
	}
	until := alarm.Now() + int64(leadsOn)
	k.page.leads.Store(until)
	k.born -= int64(shortLife)
	fmt.Println("until", until)
	return k.run()
}

// startUpgrading returns such a keeper, and until when its life leads.
func startUpgrading(t *testing.T, program string) (k *kept, until int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k = &kept{t: t, cmd: exec.Command(self, "upgrading", program)}
	k.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10")
	in, err := k.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.start(nil)
	k.life()
	if _, err := in.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if until, err = strconv.ParseInt(k.line("until"), 10, 64); err != nil {
		t.Fatal(err)
	}
	return k, until
}

// While the life leads, a signal at any instant is followed by a hand-over. Later one in the middle
// of the exec may end keeper and life without one (decision 14), but none is lost.
func TestASignalAtAnyInstantOfAnUpgradeEndsTheAgent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	content, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, content, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	k, until := startUpgrading(t, program)
	for k.lines.Scan() && !strings.Contains(k.lines.Text(), upgraded) {
	}
	after := time.Duration(alarm.Now() - until)
	if after < 0 {
		t.Errorf("upgraded %v before the life led nothing", -after)
	}
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if code := k.code(); code != 0 {
		t.Errorf("after an upgrade: exit code %d", code)
	}

	seed := rand.Uint64()
	t.Logf("seed %d, upgraded %v after the lease", seed, after)
	rng := rand.New(rand.NewPCG(seed, 0))
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
	if signal.Ignored(syscall.SIGINT) { // as in the background of a shell script: then it is ignored in the exec too
		signals = signals[:1]
	}
	const instants = 100
	sent, cut, began := 0, 0, time.Now()
	for _, i := range rng.Perm(instants) {
		if time.Since(began) > 15*time.Second { // on a busy host
			break
		}
		sent++
		s := signals[i%len(signals)]
		k, until := startUpgrading(t, program)
		at := until - int64(leadsOn) + int64((float64(i)+rng.Float64())/instants*float64(leadsOn+after*5/4))
		<-time.After(alarm.Until(at))
		at = alarm.Now()
		k.send(k.cmd.Process.Pid, s)
		handed := false
		for k.lines.Scan() {
			handed = handed || k.lines.Text() == "signal "+s.String()
		}
		switch code := k.code(); {
		case handed && code == 0:
		case !handed && code == 128+int(s) && at >= until:
			cut++
		default:
			t.Errorf("%v %v after the lease: exit code %d, handed over: %v", s, time.Duration(at-until), code, handed)
		}
	}
	t.Logf("%d of %d signals came in the middle of an exec", cut, sent)
}
