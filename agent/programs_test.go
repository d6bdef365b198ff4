package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// Environment variables that make the test binary play a program that campaigns.
const (
	programSocket = "PROGRAM_SOCKET"
	programStamps = "PROGRAM_STAMPS"
	// programBequeaths makes the program start a child that holds the connection too.
	programBequeaths = "PROGRAM_BEQUEATHS"
)

// TestMain also plays a program, or a guard, if the binary is started for that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main())
	}
	if os.Getenv(programSocket) == "" {
		flag.Parse()
		flag.Set("test.parallel", "16") // the tests wait for leases, not for processors
		os.Exit(m.Run())
	}
	if err := playAProgram(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// playAProgram campaigns in payments, and writes the time again and again while it leads.
func playAProgram() error {
	stamps, err := os.Create(os.Getenv(programStamps))
	if err != nil {
		return err
	}
	client, conns := dialer(os.Getenv(programSocket))
	response, err := client.Post("http://d/v1/elections/payments/campaign", "application/json", nil)
	if err != nil {
		return err
	}
	var until atomic.Int64
	acting := make(chan struct{})
	for lines := json.NewDecoder(response.Body); ; {
		var e api.CampaignEvent
		if err := lines.Decode(&e); err != nil {
			fmt.Println("end", err)
			return nil
		}
		switch e.Type {
		case api.CampaignElected:
			if os.Getenv(programBequeaths) != "" {
				if err := bequeath(<-conns); err != nil {
					return err
				}
			}
			until.Store(e.ValidUntilBoottimeNS)
			acting = make(chan struct{})
			go act(stamps, &until, acting)
		case api.CampaignRenewed:
			until.Store(e.ValidUntilBoottimeNS)
			continue
		case api.CampaignRevoked:
			until.Store(0)
			<-acting
			body, _ := json.Marshal(api.StoppedRequest{Term: e.Term})
			receipt, err := client.Post("http://d/v1/campaigns/"+e.Campaign+"/stopped", "application/json", bytes.NewReader(body))
			if err != nil || receipt.StatusCode != http.StatusOK {
				fmt.Println("receipt", receipt, err)
			}
		}
		fmt.Println(e.Type, e.Term)
	}
}

// dialer returns a client, and a channel that gets the client's first connection.
func dialer(socket string) (*http.Client, <-chan *net.UnixConn) {
	conns := make(chan *net.UnixConn, 1)
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			select {
			case conns <- conn.(*net.UnixConn):
			default:
			}
		}
		return conn, err
	}}}, conns
}

// bequeath starts a child that holds the connection too.
func bequeath(conn *net.UnixConn) error {
	file, err := conn.File()
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{file}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println("child", child.Process.Pid)
	return nil
}

func act(stamps io.Writer, until *atomic.Int64, done chan<- struct{}) {
	defer close(done)
	for {
		now := int64(boottime.Now())
		if now >= until.Load() {
			return
		}
		_ = binary.Write(stamps, binary.NativeEndian, now)
	}
}

// program is a program that a test has started.
type program struct {
	cmd   *exec.Cmd
	lines chan string
	path  string
}

func play(t *testing.T, c settings.Config, env ...string) *program {
	t.Helper()
	p := &program{lines: make(chan string, 100), path: filepath.Join(t.TempDir(), "stamps")}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), programSocket+"="+c.Socket, programStamps+"="+p.path)
	p.cmd.Env = append(p.cmd.Env, env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	p.wait(t, "candidate")
	return p
}

// wait returns the term of the program's next line of that type.
func (p *program) wait(t *testing.T, kind string) int {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				t.Fatalf("the program ended before %s", kind)
			}
			if rest, ok := strings.CutPrefix(line, kind+" "); ok {
				term, _ := strconv.Atoi(rest)
				return term
			}
		case <-deadline:
			t.Fatalf("the program is not told %s", kind)
		}
	}
}

// span returns the first and the last instant at which the program acted, as far as it has written them.
func (p *program) span(t *testing.T) (first, last int64) {
	t.Helper()
	data, err := os.ReadFile(p.path)
	if err != nil || len(data) < 8 {
		t.Fatalf("it never acted: %v", err)
	}
	n := len(data) / 8 * 8
	return int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[n-8 : n]))
}

// between counts the instants in that span at which the program acted.
func (p *program) between(t *testing.T, from, to int64) (n int) {
	t.Helper()
	data, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) >= 8; data = data[8:] {
		if at := int64(binary.NativeEndian.Uint64(data)); from <= at && at <= to {
			n++
		}
	}
	return n
}

// running is an agent that runs.
type running struct {
	config settings.Config
	client *http.Client
	out    *stderr
	stop   func() error
}

// trio runs three agents that agree on a leader.
func trio(t *testing.T) (agents []running) {
	t.Helper()
	var join []string
	for _, name := range []string{"a", "b", "c"} {
		c := lone(t)
		c.Name, c.Voters, c.Join, c.Lease = name, []string{"a", "b", "c"}, join, 6*time.Second // long, since the programs need processors too
		client, out, stop := start(t, c)
		agents = append(agents, running{c, client, out, stop})
		_, gossip := ports(t, out.String())
		join = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(gossip))}
	}
	for _, a := range agents {
		follow(t, a.client, func(c api.Change) bool { return c.Leader != nil })
	}
	return agents
}

// The first program is killed. The second one takes over in less than the first one's lease, since the kernel proves
// the first one's end. Then the second one resigns to a third, which waits only for the receipt. Then the agent of
// the third one stops.
func TestAProgramThatIsKilledOrResignsIsFollowedByAnotherWithoutOverlap(t *testing.T) {
	t.Parallel()
	agents := trio(t)
	first := play(t, agents[0].config)
	term := first.wait(t, "elected")
	second := play(t, agents[1].config)
	waitFor(t, agents[0].client, "/v1/elections/payments", `"candidates":["a","b"]`)

	began := boottime.Now()
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if next := second.wait(t, "elected"); next <= term {
		t.Errorf("term %d follows term %d", next, term)
	}
	took := boottime.Now().Sub(began)
	t.Logf("killed to elected: %v", took)
	_ = first.cmd.Wait()
	_, end := first.span(t)
	begin, _ := second.span(t)
	if begin <= end {
		t.Errorf("they overlap by %v", time.Duration(end-begin))
	}
	waitFor(t, agents[0].client, "/metrics", `doyen_campaign_releases_total{cluster="doyen",kind="proof"} 1`)

	third := play(t, agents[2].config)
	waitFor(t, agents[1].client, "/v1/elections/payments", `"candidates":["b","c"]`)
	began = boottime.Now()
	if response, err := agents[1].client.Post("http://d/v1/elections/payments/resign", "", nil); err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	second.wait(t, "revoked")
	third.wait(t, "elected")
	t.Logf("resign to elected: %v", boottime.Now().Sub(began))
	_, end = second.span(t)
	if begin, _ = third.span(t); begin <= end {
		t.Errorf("they overlap by %v", time.Duration(end-begin))
	}
	waitFor(t, agents[1].client, "/metrics", `doyen_campaign_releases_total{cluster="doyen",kind="receipt"} 1`)

	if err := agents[2].stop(); err != nil {
		t.Fatal(err)
	}
	second.wait(t, "elected")
	if term := third.wait(t, "revoked"); term == 0 {
		t.Error("it was told only that the agent stops, and not to stop acting")
	}
	third.wait(t, "revoked") // because the agent stops
	third.wait(t, "end")
	begin, end = third.span(t)
	if n := second.between(t, begin, end); n > 0 {
		t.Errorf("the second one acted %d times while the third one did", n)
	}
}

// A process passes its connection to a child, and ends. The child may still act, so nothing is proven, and the
// lease runs out.
func TestAProgramWhoseChildHoldsItsConnectionIsNotProvenGone(t *testing.T) {
	t.Parallel()
	agents := trio(t)
	first := play(t, agents[0].config, programBequeaths+"=1")
	child := first.wait(t, "child")
	kill := sync.OnceValue(func() error { return syscall.Kill(child, syscall.SIGKILL) })
	t.Cleanup(func() { _ = kill() })
	first.wait(t, "elected")
	second := play(t, agents[1].config)
	waitFor(t, agents[0].client, "/v1/elections/payments", `"candidates":["a","b"]`)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	agents[0].out.wait(t, "another process holds its connection") // the agent notices the child only now
	waitFor(t, agents[0].client, "/v1/campaigns", `"election":"payments"`)
	if err := kill(); err != nil {
		t.Fatal(err)
	}
	second.wait(t, "elected")
	waitFor(t, agents[0].client, "/metrics", `doyen_campaign_releases_total{cluster="doyen",kind="deadline"} 1`)
	waitFor(t, agents[0].client, "/metrics", `doyen_campaign_releases_total{cluster="doyen",kind="proof"} 0`)
}

// waitFor asks until the answer contains the text.
func waitFor(t *testing.T, c *http.Client, path, want string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		_, body := get(t, c, path)
		if strings.Contains(body, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come to say %s: %s", path, want, body)
		}
	}
}
