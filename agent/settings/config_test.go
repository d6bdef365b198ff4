package settings_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
)

func resolved(t *testing.T, change func(*settings.Config)) (settings.Config, error) {
	t.Helper()
	c := settings.Default()
	c.Name = "a"
	c.DataDir, c.Socket = t.TempDir(), "/run/doyen/doyen.sock"
	change(&c)
	c, err := c.Resolve()
	if err != nil {
		return c, err
	}
	return c, c.Validate()
}

func TestDefaultsAreAWorkingConfiguration(t *testing.T) {
	c, err := resolved(t, func(*settings.Config) {})
	if err != nil {
		t.Fatal(err)
	}
	if c.Heartbeat != 200*time.Millisecond || c.Lease != 1200*time.Millisecond || c.Advertise != "127.0.0.1" {
		t.Errorf("resolved to %+v", c)
	}
	var out bytes.Buffer
	if err := c.Fprint(&out, nil); err != nil || !strings.Contains(out.String(), "heartbeat: 200ms\n") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

func TestProfilesSetTimingUnlessGiven(t *testing.T) {
	for name, want := range map[string][2]time.Duration{
		"local": {50 * time.Millisecond, 300 * time.Millisecond},
		"wan":   {time.Second, 6 * time.Second},
	} {
		c, err := resolved(t, func(c *settings.Config) { c.Profile = name })
		if err != nil || c.Heartbeat != want[0] || c.Lease != want[1] {
			t.Errorf("%s: %s and %s, %v; want %v", name, c.Heartbeat, c.Lease, err, want)
		}
	}
	c, err := resolved(t, func(c *settings.Config) { c.Lease = 3 * time.Second })
	if err != nil || c.Heartbeat != 200*time.Millisecond || c.Lease != 3*time.Second {
		t.Errorf("%s and %s, %v", c.Heartbeat, c.Lease, err)
	}
}

func TestAnInterfaceMayBeGivenForItsAddress(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			c, err := resolved(t, func(c *settings.Config) { c.Bind = i.Name; c.HTTP = "127.0.0.1" })
			if err != nil || c.Bind != "127.0.0.1" || c.Advertise != "127.0.0.1" || c.HTTP != "127.0.0.1:7980" {
				t.Errorf("%s: %+v, %v", i.Name, c, err)
			}
			return
		}
	}
}

func TestAllMistakesAreFoundAtOnce(t *testing.T) {
	c := settings.Default()
	c.Name, c.Bind, c.HTTP, c.Priority, c.OnChange = "A", "192.0.2.1", "x", -1, "/not/there"
	c.DataDir = filepath.Join(key(t), "below-a-file")
	var flags []string
	for _, err := range c.Mistakes() {
		bad, ok := errors.AsType[*settings.Error](err)
		if !ok {
			t.Fatal(err)
		}
		flags = append(flags, bad.Flag)
	}
	slices.Sort(flags)
	if want := []string{"bind", "data-dir", "http", "key-file", "name", "on-change", "priority", "voters"}; !slices.Equal(flags, want) {
		t.Errorf("found %v, want %v", flags, want)
	}
	if wrong := must(resolved(t, func(*settings.Config) {})).Mistakes(); len(wrong) > 0 {
		t.Errorf("the default has %v", wrong)
	}
}

func must(c settings.Config, _ error) settings.Config { return c }

func TestAMissingAddressIsWaitedFor(t *testing.T) {
	for _, change := range []func(*settings.Config){
		func(c *settings.Config) { c.Bind = "192.0.2.1" },
		func(c *settings.Config) { c.Bind = "nosuch7" },
		func(c *settings.Config) { c.HTTP = "192.0.2.1" },
	} {
		c := settings.Default()
		change(&c)
		ctx, cancel := context.WithCancel(t.Context())
		notices := 0
		c.Await(ctx, func(text string) {
			notices++
			if !strings.Contains(text, "192.0.2.1 is not an address of this host: the agent waits for it") && !strings.Contains(text, "nosuch7") {
				t.Errorf("notice %q", text)
			}
			cancel()
		})
		if notices != 1 {
			t.Errorf("%+v: %d notices", c, notices)
		}
	}
	for _, bind := range []string{"127.0.0.1", "localhost", "10.0.0.300", "", "224.0.0.1"} {
		c := settings.Default()
		c.Bind = bind
		c.Await(t.Context(), func(text string) { t.Fatalf("%q: %s", bind, text) })
	}
}

func TestInconsistentValuesAreRefusedByFlag(t *testing.T) {
	cases := []struct {
		flag, says string
		change     func(*settings.Config)
	}{
		{"name", "not a valid name", func(c *settings.Config) { c.Name = "A b" }},
		{"cluster", "not a valid name", func(c *settings.Config) { c.Cluster = "" }},
		{"voters", "not a valid name", func(c *settings.Config) { c.Voters = []string{"a", ""} }},
		{"voters", "named twice", func(c *settings.Config) { c.Voters = []string{"a", "b", "a"} }},
		{"voters", "not among b,c", func(c *settings.Config) { c.Voters = []string{"b", "c"} }},
		{"voters", "at most", func(c *settings.Config) { c.Voters = many(40) }},
		{"socket", "bytes", func(c *settings.Config) { c.Socket = "/" + strings.Repeat("x", 107) }},
		{"bind", "not an IP address", func(c *settings.Config) { c.Bind = "localhost" }},
		{"bind", "not an IP address", func(c *settings.Config) { c.Bind = "fe80::1%eth0" }},
		{"bind", "not an IP address", func(c *settings.Config) { c.Bind = "224.0.0.1" }},
		{"advertise", "of a host", func(c *settings.Config) { c.Advertise = "0.0.0.0" }},
		{"advertise", "of a host", func(c *settings.Config) { c.Advertise = "somewhere" }},
		{"advertise", "nobody could reach fd00::2: --bind is 0.0.0.0", func(c *settings.Config) { c.Bind, c.Advertise, c.KeyFile = "0.0.0.0", "fd00::2", "/k" }},
		{"advertise", "nobody could reach 10.0.0.1: --bind is ::", func(c *settings.Config) { c.Bind, c.Advertise, c.KeyFile = "::", "10.0.0.1", "/k" }},
		{"gossip-port", "not a port", func(c *settings.Config) { c.GossipPort = 65536 }},
		{"peer-port", "not a port", func(c *settings.Config) { c.PeerPort = -1 }},
		{"peer-port", "also the gossip port", func(c *settings.Config) { c.PeerPort = c.GossipPort }},
		{"join", "not a port", func(c *settings.Config) { c.Join = []string{"b:0"} }},
		{"join", "not a host", func(c *settings.Config) { c.Join = []string{"b b"} }},
		{"join", "not a host", func(c *settings.Config) { c.Join = []string{""} }},
		{"join", "not a host and a port", func(c *settings.Config) { c.Join = []string{"a:1:2"} }},
		{"key-file", "is required", func(c *settings.Config) { c.Bind, c.Advertise = "0.0.0.0", "10.0.0.1" }},
		{"voters", "is required when --bind is not loopback", func(c *settings.Config) {
			c.Name, c.Bind, c.Advertise, c.KeyFile = "a", "10.0.0.1", "10.0.0.1", key(t)
		}},
		{"key-file", "no such file", func(c *settings.Config) { c.KeyFile = "/nowhere/at/all" }},
		{"algorithm", "unknown", func(c *settings.Config) { c.Algorithm = "raft" }},
		{"priority", "not between", func(c *settings.Config) { c.Priority = 1_000_001 }},
		{"priority", "not between", func(c *settings.Config) { c.Priority = -1 }},
		{"preempt-delay", "out of range", func(c *settings.Config) { c.PreemptDelay = -time.Second }},
		{"profile", "unknown", func(c *settings.Config) { c.Profile = "moon" }},
		{"heartbeat", "third of the lease", func(c *settings.Config) { c.Heartbeat = 400 * time.Millisecond }},
		{"heartbeat", "below 5ms", func(c *settings.Config) { c.Heartbeat = time.Millisecond }},
		{"lease", "not above 0", func(c *settings.Config) { c.Lease = -time.Second }},
		{"heartbeat", "below 5ms", func(c *settings.Config) { c.Heartbeat = -time.Second }},
		{"lease", "above", func(c *settings.Config) { c.Lease = time.Hour }},
		{"http", "not an address", func(c *settings.Config) { c.HTTP = "8080" }},
		{"http", "not a port", func(c *settings.Config) { c.HTTP = "localhost:http" }},
		{"log-level", "unknown", func(c *settings.Config) { c.LogLevel = "loud" }},
		{"log-format", "unknown", func(c *settings.Config) { c.LogFormat = "xml" }},
	}
	for _, c := range cases {
		_, err := resolved(t, c.change)
		var bad *settings.Error
		if !errors.As(err, &bad) || bad.Flag != c.flag || !strings.Contains(bad.Problem, c.says) {
			t.Errorf("got %v, want --%s: …%s…", err, c.flag, c.says)
			continue
		}
		if strings.Contains(err.Error(), "\n") || bad.Hint == "" {
			t.Errorf("--%s: %q is not one line with a hint", c.flag, err)
		}
	}
}

func many(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "v" + strings.Repeat("x", i+1)
	}
	return names
}

func TestGoodJoinAddresses(t *testing.T) {
	_, err := resolved(t, func(c *settings.Config) {
		c.Join = []string{"b", "b.example.com:7946", "10.0.0.2", "10.0.0.2:1", "::1", "[::1]:7946"}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTheKeyFileMustBeAPrivateKeyOfAFittingLength(t *testing.T) {
	good := "bVb2DkIvTQxMPYcdEhWxVQvQ4PMa0jNfC7kS3uJrWQk=\n"
	cases := []struct {
		name, content, says string
		mode                os.FileMode
	}{
		{"good", good, "", 0o600},
		{"readable by the group", good, "chmod 600", 0o640},
		{"readable by all", good, "chmod 600", 0o604},
		{"no base64", "*", "not valid base64", 0o600},
		{"too short", "AAAA", "a key of 3 bytes, expected 32", 0o600},
		{"of AES-128", "AAECAwQFBgcICQoLDA0ODw==", "a key of 16 bytes, expected 32", 0o600},
		{"of AES-192", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", "a key of 24 bytes, expected 32", 0o600},
		{"empty", "", "has no key", 0o600},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := resolved(t, func(cfg *settings.Config) { cfg.KeyFile = path })
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: got %v, want …%s…", c.name, err, c.says)
		}
	}
	if _, err := resolved(t, func(cfg *settings.Config) { cfg.KeyFile = t.TempDir() }); err == nil {
		t.Error("a directory was taken for a key")
	}
}

func key(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("bVb2DkIvTQxMPYcdEhWxVQvQ4PMa0jNfC7kS3uJrWQk="), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
