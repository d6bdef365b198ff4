package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/executable"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// reloading is an agent whose configuration the test changes.
type reloading struct {
	reread atomic.Int64 // how often the configuration was read again
	t      *testing.T
	c      settings.Config // the result of the next reading
	wrong  error           // the error of the next reading; nil: none
	client *http.Client
	out    *stderr
	hup    chan os.Signal
}

func newReloading(t *testing.T, change func(*settings.Config)) *reloading {
	t.Helper()
	r := &reloading{t: t, hup: make(chan os.Signal)}
	c := lone(t)
	change(&c)
	r.c = c
	reread := func() (settings.Config, error) {
		defer r.reread.Add(1)
		if r.wrong != nil {
			return settings.Config{}, r.wrong
		}
		return r.c.Resolve()
	}
	r.client, r.out, _ = start(t, c, agent.Process{Reread: reread, Hangups: r.hup})
	untilAnswer(r, "/v1/members", func(m api.Members) bool { return len(m.Members) == 1 }) // the agent answers before its first step
	return r
}

func (r *reloading) reload() (outcome api.Reload) {
	r.t.Helper()
	response, err := r.client.Post("http://d/v1/reload", "application/json", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&outcome); err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

func (r *reloading) want(applied, restart string) {
	r.t.Helper()
	o := r.reload()
	if got := strings.Join(o.Applied, " "); !o.Done || got != applied || strings.Join(o.NeedsRestart, " ") != restart {
		r.t.Errorf("reload: %+v", o)
	}
}

func answerOf[T any](r *reloading, path string) (answer T) {
	r.t.Helper()
	response, err := r.client.Get("http://d" + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		r.t.Fatal(err)
	}
	return answer
}

// untilAnswer waits for an answer of the agent that fits.
func untilAnswer[T any](r *reloading, path string, fits func(T) bool) T {
	r.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); ; <-again.C {
		answer := answerOf[T](r, path)
		if fits(answer) {
			return answer
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s stays at %+v", path, answer)
		}
	}
}

func isLed(e api.Election) bool { return e.IsLeader }

// Each setting that a reload applies is in force at once, and no reload ends a leadership.
func TestAReloadAppliesWhatItCanAndNamesTheRest(t *testing.T) {
	r := newReloading(t, func(*settings.Config) {})
	term := untilAnswer(r, "/v1/elections/default", isLed).Term
	r.want("", "")
	r.c.Priority, r.c.Preempt, r.c.PreemptDelay = 7, false, 9*time.Second
	r.c.Join, r.c.LogLevel, r.c.Lease = []string{"127.0.0.1:9"}, "debug", 2*time.Second
	r.want("join priority preempt preempt-delay log-level", "lease")
	if a := answerOf[api.Agent](r, "/v1/agent"); a.Preempt || a.PreemptDelayMS != 9000 || a.LeaseMS != 3000 {
		t.Errorf("%+v", a)
	}
	untilAnswer(r, "/v1/members", func(m api.Members) bool { return m.Members[0].Priority == 7 })
	r.want("", "lease")
	if e := answerOf[api.Election](r, "/v1/elections/default"); !e.IsLeader || e.Term != term {
		t.Errorf("the lead was lost: %+v", e)
	}
	r.c.Candidate = false
	r.want("candidate", "lease")
	untilAnswer(r, "/v1/elections/default", func(e api.Election) bool { return !e.IsLeader && len(e.Candidates) == 0 })
	r.c.Candidate = true
	r.want("candidate", "lease")
	untilAnswer(r, "/v1/elections/default", isLed)
}

// Once the roster has a lease, a reload compares the file's lease with it. If they differ, the answer names the
// command that changes the roster, and there is a warning. A file without a lease causes no warning.
func TestAReloadComparesWhatTheClusterHas(t *testing.T) {
	t.Parallel()
	r := newReloading(t, func(*settings.Config) {})
	untilAnswer(r, "/v1/elections/default", isLed)
	r.c.Lease = 4 * time.Second
	if o := r.reload(); !o.Done || !slices.Equal(o.NeedsRestart, []string{"lease"}) || !strings.Contains(o.Message, "`doyen settings set`") {
		t.Errorf("each file has its lease: %+v", o)
	}
	r.c.Lease = 3 * time.Second
	response, err := r.client.Post("http://d/v1/settings", "application/json", strings.NewReader(`{"lease_ms":2000}`))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	response.Body.Close()
	differs := func(text string) func(api.Agent) bool {
		return func(a api.Agent) bool {
			i := slices.IndexFunc(a.Warnings, func(w api.Warning) bool { return w.Code == "settings_differ" })
			return i >= 0 == (text != "") && (i < 0 || strings.Contains(a.Warnings[i].Message, text))
		}
	}
	untilAnswer(r, "/v1/agent", differs("lease 3s, and all agents follow the cluster's: bully and 2s"))
	r.c.Lease = 5 * time.Second
	if o := r.reload(); !o.Done || len(o.NeedsRestart) > 0 || !strings.Contains(o.Message, "doyen settings set algorithm=bully lease=5s") {
		t.Errorf("%+v", o)
	}
	untilAnswer(r, "/v1/agent", differs("lease 5s, and"))
	for _, lease := range []time.Duration{2 * time.Second, 0} {
		r.c.Lease = lease
		if o := r.reload(); !o.Done || len(o.NeedsRestart) > 0 || o.Message != "" {
			t.Errorf("%s: %+v", lease, o)
		}
		untilAnswer(r, "/v1/agent", differs(""))
	}
}

func TestAWrongConfigurationChangesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := newReloading(t, func(*settings.Config) {})
	r.wrong = errors.New("agent.yaml:3: no such key")
	r.c.Priority = 3
	if o := r.reload(); o.Done || !strings.Contains(o.Message, "agent.yaml:3") {
		t.Errorf("%+v", o)
	}
	r.wrong = nil
	r.c.HTTP = taken.Addr().String() // only the attempt to listen shows this mistake
	if o := r.reload(); o.Done || !strings.Contains(o.Message, "is in use") {
		t.Errorf("%+v", o)
	}
	if m := answerOf[api.Members](r, "/v1/members"); m.Members[0].Priority != 100 {
		t.Errorf("%+v", m)
	}
	before := r.reread.Load()
	r.hup <- syscall.SIGHUP
	for limit := time.Now().Add(patience); r.reread.Load() == before; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatal("the configuration is not read again")
		}
	}
	r.c.HTTP = ""
	r.hup <- syscall.SIGHUP
	untilAnswer(r, "/v1/members", func(m api.Members) bool { return m.Members[0].Priority == 3 })
}

func TestAReloadMovesTheListener(t *testing.T) {
	answers := func(addr string) bool {
		response, err := http.Get("http://" + addr + "/livez")
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	}
	ports := loopbacks.FreePorts(t, 2)
	first, second := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	r := newReloading(t, func(c *settings.Config) { c.HTTP = first })
	announced := func(at string) {
		t.Helper()
		untilAnswer(r, "/v1/members", func(m api.Members) bool { return m.Members[0].HTTPAddr == at })
	}
	announced(first)
	r.c.HTTP = second
	r.want("http", "")
	announced(second)
	if answers(first) || !answers(second) {
		t.Error("it did not move")
	}
	r.c.HTTP = fmt.Sprintf("0.0.0.0:%d", ports[1]) // the old address is part of the new one
	r.want("http", "")
	if !answers(second) {
		t.Error("it does not answer at the wider address")
	}
	r.c.HTTP = ""
	r.want("http", "")
	if answers(second) {
		t.Error("it still answers")
	}
	announced("")
}

// The address for agent checks changes only at the next start.
func TestAReloadLeavesTheAgentCheckWhereItIs(t *testing.T) {
	ports := loopbacks.FreePorts(t, 2)
	first, second := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	r := newReloading(t, func(c *settings.Config) { c.AgentCheck = first })
	untilAnswer(r, "/v1/elections/default", isLed)
	for _, to := range []string{second, ""} {
		r.c.AgentCheck = to
		r.want("", "agent-check")
		conn, err := net.DialTimeout("tcp", first, patience)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = conn.Write([]byte("default\n"))
		verdict, unread := io.ReadAll(conn)
		conn.Close()
		if len(verdict) == 0 { // any verdict will do: who leads now is not known
			t.Errorf("agent-check %q: %q, %v, %v", to, verdict, err, unread)
		}
		if l, err := net.Listen("tcp", second); err != nil {
			t.Errorf("it listens at the new address too: %v", err)
		} else {
			l.Close()
		}
	}
}

func TestAReloadReadsTheKeysAgain(t *testing.T) {
	const one, two = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(one)
	r := newReloading(t, func(c *settings.Config) { c.KeyFile = path })
	r.want("", "")
	write(two + one)
	r.want("key-file", "")
	if k := answerOf[api.Keys](r, "/v1/keys"); len(k.Keys) != 2 {
		t.Errorf("%+v", k)
	}
	write("non sense")
	if o := r.reload(); o.Done || !strings.Contains(o.Message, "not valid base64") {
		t.Errorf("%+v", o)
	}
	write(one + two)
	r.c.KeyFile = ""
	r.want("key-file", "key-file") // the keys are in another order
}

// If a reload gives a hook to an election, the hook runs for the present leader.
func TestAReloadChangesHooks(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	hook := func(word string) string {
		return executable.Script(t, "echo "+word+" $DOYEN_ELECTION $DOYEN_EVENT >> "+log)
	}
	wrote := func(r *reloading, want ...string) {
		t.Helper()
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for end := time.Now().Add(patience); ; <-again.C {
			text, _ := os.ReadFile(log)
			if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); slices.Equal(lines, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the hooks wrote %q, want %q", text, want)
			}
		}
	}
	r := newReloading(t, func(*settings.Config) {})
	untilAnswer(r, "/v1/elections/default", isLed)
	r.c.OnChange = hook("one")
	r.want("on-change", "")
	wrote(r, "one default leading")
	r.c.Elections = map[string]settings.ElectionConfig{"default": {OnChange: hook("two")}}
	r.want("elections", "")
	wrote(r, "one default leading", "two default leading")
	r.c.OnChange, r.c.Elections = "", nil // the removed hook still runs at the end, to undo what it has set up
	r.want("on-change elections", "")
	r.c.Candidate = false
	r.want("candidate", "")
	untilAnswer(r, "/v1/elections/default", func(e api.Election) bool { return !e.IsLeader })
	r.c.OnChange = hook("three")
	r.want("on-change", "")
	wrote(r, "one default leading", "two default leading", "two default none", "three default none")
}
