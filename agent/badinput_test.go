package agent_test

import (
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
)

// await waits until want accepts what the agent has written.
func (s *stderr) await(t *testing.T, what string, want func(string) bool) {
	t.Helper()
	s.mu.Lock()
	if want(s.buf.String()) {
		s.mu.Unlock()
		return
	}
	s.want, s.seen = want, make(chan struct{})
	seen := s.seen
	s.mu.Unlock()
	select {
	case <-seen:
	case <-time.After(patience):
		t.Fatalf("it never said %s:\n%s", what, s)
	}
}

// warned returns the warnings among the lines of a log.
func warned(log string) []string {
	var all []string
	for line := range strings.Lines(log) {
		if _, warning, ok := strings.Cut(line, " level=WARN "); ok {
			all = append(all, warning)
		}
	}
	return all
}

func withKey(t *testing.T, c *settings.Config, fill byte) {
	t.Helper()
	c.KeyFile = filepath.Join(filepath.Dir(c.DataDir), "key")
	text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(fill), 32)))
	if err := os.WriteFile(c.KeyFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Two agents whose settings or keys differ both warn once, with the other agent's name or address and the
// reason. Both go on.
func TestAgentsThatDoNotAgreeSayWhyOnBothSidesOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testing.T, *settings.Config)
		want   string // a part of the warnings of both
	}{
		{"algorithm", func(_ *testing.T, c *settings.Config) { c.Algorithm = "ring" }, "--algorithm"},
		{"quorum", func(_ *testing.T, c *settings.Config) { c.Quorum = false }, "--quorum"},
		{"lease", func(_ *testing.T, c *settings.Config) { c.Lease = 1600 * time.Millisecond }, "--lease"},
		{"cluster", func(_ *testing.T, c *settings.Config) { c.Cluster = "other" }, "cluster"},
		{"key", func(t *testing.T, c *settings.Config) { withKey(t, c, 'b') }, "key"},
		{"name", func(_ *testing.T, c *settings.Config) { c.Name = "a" }, "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first, second := lone(t), lone(t)
			second.Name = "b"
			withKey(t, &first, 'a')
			withKey(t, &second, 'a')
			c.change(t, &second)
			client, one, stop := start(t, first)
			_, gossip := ports(t, one.String())
			second.Join = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(gossip))}
			_, two, stopSecond := start(t, second)
			for _, out := range []*stderr{one, two} {
				out.await(t, "why it refuses", func(log string) bool {
					return slices.ContainsFunc(warned(log), func(w string) bool { return strings.Contains(w, c.want) })
				})
			}
			if status, _ := get(t, client, "/livez"); status != http.StatusOK {
				t.Errorf("the first agent suffered: %d", status)
			}
			for _, err := range []error{stop(), stopSecond()} {
				if err != nil {
					t.Error(err)
				}
			}
			for side, out := range map[string]*stderr{"first": one, "second": two} {
				said := map[string]bool{}
				for _, warning := range warned(out.String()) {
					if said[warning] {
						t.Errorf("%s said twice: %s", side, warning)
					}
					said[warning] = true
				}
			}
		})
	}
}

// On a full disk the agent promises nothing, leads nothing and reports why. The promises on record stay. Once
// there is room, the agent goes on.
func TestAFullDiskStopsTheVotingAndIsSaid(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("no /dev/full on this system: %v", err)
	}
	c := lone(t)
	client, _, stop := start(t, c)
	follow(t, client, leads)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(c.DataDir, "state")
	before, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", state+".new"); err != nil {
		t.Fatal(err)
	}
	client, out, _ := start(t, c)
	out.await(t, "why", func(log string) bool {
		return strings.Contains(log, "no space left on device") && strings.Contains(log, "code=disk_failing")
	})
	get(t, client, "/livez") // after this turn of the loop, readers see what was logged
	if status, body := get(t, client, "/v1/elections/default"); status != http.StatusOK || !strings.Contains(body, `"leader":null`) {
		t.Errorf("with a full disk: %d %s", status, body)
	}
	if _, body := get(t, client, "/v1/agent"); !strings.Contains(body, `"code":"disk_failing"`) {
		t.Errorf("no warning in %s", body)
	}
	if after, err := os.ReadFile(state); err != nil || string(after) != string(before) {
		t.Errorf("the promises on record changed: %v", err)
	}
	if err := os.Remove(state + ".new"); err != nil {
		t.Fatal(err)
	}
	follow(t, client, leads)
}
