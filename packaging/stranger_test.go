package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is a block of commands in a page. A comment in it names the host to run them on.
type block struct {
	line     int
	on, text string
}

func page(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func blocks(page []byte) (found []block) {
	for _, at := range regexp.MustCompile("(?ms)^```sh\n# on ([a-z' ]+).*?\n(.*?)^```$").FindAllSubmatchIndex(page, -1) {
		found = append(found, block{1 + bytes.Count(page[:at[0]], []byte("\n")), string(page[at[2]:at[3]]), string(page[at[4]:at[5]])})
	}
	return found
}

// step describes what is expected of a block.
type step struct {
	has    string // text of the block
	want   string // a regular expression for the output
	again  bool   // the commands only read, so they are repeated until the output matches
	abrupt bool   // the host goes down
	timed  bool   // its exit code depends on how fast this machine is
	before func(*testing.T, *site)
	after  func(*testing.T, *site)
}

// A stranger with three hosts follows docs/operations.md from start to end.
func TestAStrangersPath(t *testing.T) {
	t.Parallel() // beside the nightly job, which mostly waits
	s := newSite(t)
	begun := time.Now()
	s.follow(t, "operations.md", begun, steps(begun))
}

// follow runs the blocks of a page, in its order.
func (s *site) follow(t *testing.T, name string, begun time.Time, all []step) {
	t.Helper()
	found := blocks(page(t, name))
	if len(found) != len(all) {
		t.Errorf("%d blocks, and not %d", len(found), len(all))
	}
	for i, b := range found {
		if i == len(all) || !strings.Contains(b.text, all[i].has) {
			t.Fatalf("line %d: another step is expected here than\n%s", b.line, b.text)
		}
		next := all[i]
		if next.before != nil {
			next.before(t, s)
		}
		for _, h := range s.on(t, b.on) {
			var out string
			switch {
			case next.again:
				out = h.await(t, b.text, next.want)
			case next.abrupt:
				out, _ = h.sh(b.text) // the shell may end with the host
				_ = h.boot.Wait()
			case next.timed:
				if out, _ = h.sh(b.text); !regexp.MustCompile(next.want).MatchString(out) {
					t.Fatalf("line %d, on %s:\n%s%s", b.line, h.name, b.text, out)
				}
			default:
				out = h.must(t, b.text, next.want)
			}
			t.Logf("after %.1f s, on %s, line %d:\n%s%s", time.Since(begun).Seconds(), h.name, b.line, b.text, out)
		}
		if next.after != nil {
			next.after(t, s)
		}
	}
}

func steps(begun time.Time) []step {
	var former *host // the leader and its term before the step
	var term int
	remember := func(t *testing.T, s *site) { former, term = s.leader(t) }
	same := func(t *testing.T, s *site) {
		if h, now := s.leader(t); h != former || now != term {
			t.Errorf("%s led in term %d, and %s leads in %d", former.name, term, h.name, now)
		}
	}
	return []step{
		{has: "apt install ./doyen_" + made.version + "-1", want: "Setting up doyen"},
		{has: "doyen keygen --out /etc/doyen/keys/cluster", after: copyTheKey},
		{has: "chown doyen:doyen"},
		{has: "--check-config", before: configure, want: "voters: "},
		{has: "systemctl enable --now doyen"},
		{has: "doyen status", want: `exists: 3 of 3 voters(?s:.*)default +(leading|following)`, again: true},
		{has: "doyen plan --down", want: `(?m)^default`, after: remember},
		{has: "systemctl reboot --force --force", abrupt: true},
		{has: "doyen history", want: `(?m)^[abc]\n(?s:.*)lease expired\n.* elected`, again: true, after: func(t *testing.T, s *site) {
			if took := time.Since(begun); took > 3*time.Minute {
				t.Errorf("the first failover was seen after %s", took)
			}
			was := former
			if remember(t, s); former == was {
				t.Errorf("%s leads, and its host is down", was.name)
			}
			was.start(t)
			was.await(t, "systemctl is-active doyen", "^active")
		}},
		{has: "doyen status", want: `exists: 3 of 3 voters`, again: true, after: same},
		{has: "doyen allow payments --agents a,b", want: `payments +a,b +100`, after: onlyWhoMayLeads},
		{has: "echo 'check: ", after: same},
		{has: "rm /etc/healthy", want: `check failed: /bin/ls: cannot access '/etc/healthy'`, after: func(t *testing.T, s *site) {
			was := former
			if remember(t, s); former == was {
				t.Errorf("%s leads, and its check fails", was.name)
			}
		}},
		{has: "rm -f /etc/healthy"},
		{has: "doyen status", want: `default +(leading|following) [^,\n]*\n(?s:.*)check_failed: this host leads only where no other host can \(keep-last\)`, again: true},
		{has: "touch /etc/healthy"},
		{has: "doyen status", want: `default +(leading|following) .* [abc],[abc],[abc]`, again: true, after: remember},
		{has: "apt install ./doyen_" + made.version + "-2", want: `restarted; version(?s:.*)quorum +exists`, before: release2, after: same},
		{has: "echo 'priority: 120'", want: `(?m)^a .* 120 `, after: func(t *testing.T, s *site) {
			s.hosts[0].await(t, "doyen leader", "^a\n$")
			remember(t, s)
			aMistakeChangesNothing(t, s.hosts[0])
			same(t, s)
		}},
		{has: "doyen drill --stop", want: `(?s)was asked to stop.*(as planned|was without its leader)`, timed: true, after: func(t *testing.T, s *site) {
			s.hosts[0].await(t, "doyen leader", "^a\n$")
			remember(t, s)
		}},
		{has: "doyen keys rotate", want: `encrypts +a,b,c +-\n`, after: func(t *testing.T, s *site) {
			for _, h := range s.hosts {
				h.must(t, "! cmp --quiet /etc/doyen/keys/cluster /root/former-key && doyen keys list", `^FINGERPRINT.*\n.* encrypts +a,b,c +-\n$`)
			}
			same(t, s)
		}},
		{has: "doyen doctor", want: `(?m)^ok +peers .*: from here, and back$`},
		{has: "doyen debug", want: `^wrote doyen-debug-`, after: func(t *testing.T, s *site) {
			key, _, _ := strings.Cut(s.hosts[0].must(t, "cat /etc/doyen/keys/cluster", "."), "\n")
			s.hosts[0].must(t, "tar -tzf doyen-debug-*.tar.gz; ! tar -xzOf doyen-debug-*.tar.gz | grep --text --fixed-strings '"+key+"'", `status.json`)
		}},
	}
}

// onlyWhoMayLeads runs a program on c, which may not lead, and then on a and b.
func onlyWhoMayLeads(t *testing.T, s *site) {
	a, b, c := s.hosts[0], s.hosts[1], s.hosts[2]
	for _, h := range []*host{c, a, b} {
		h.must(t, "systemd-run --quiet --unit=payments doyen run payments -- sleep infinity", "")
		h.await(t, "doyen campaigns", "(?m)^payments ")
		if h != c {
			c.await(t, "doyen leader payments", "^a\n$")
		}
	}
}

// aMistakeChangesNothing reloads a configuration with a mistake.
func aMistakeChangesNothing(t *testing.T, h *host) {
	const edit = "cp /etc/doyen/agent.yaml . && echo 'leese: 2s' >>/etc/doyen/agent.yaml\n"
	h.must(t, edit+"! systemctl reload doyen && journalctl --unit=doyen --lines=20; ! doyen reload", `nothing was changed: .*agent.yaml:\d+: unknown key "leese"`)
	h.must(t, "cp agent.yaml /etc/doyen/agent.yaml && systemctl reload doyen", "")
}

// release2 makes a package of another version, with the same content.
func release2(t *testing.T, s *site) {
	work := t.TempDir()
	run(t, "dpkg-deb", "-R", file(t, ".deb"), work+"/content")
	run(t, "sed", "-i", "s/^Version: .*/Version: "+made.version+"-2/", work+"/content/DEBIAN/control")
	name := strings.Replace(filepath.Base(file(t, ".deb")), "-1_", "-2_", 1)
	run(t, "dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", work+"/content", work+"/"+name)
	for _, h := range s.hosts {
		run(t, "cp", work+"/"+name, h.root+"/root")
	}
}

// copyTheKey copies the key as scp does.
func copyTheKey(t *testing.T, s *site) {
	const at = "etc/doyen/keys/cluster"
	key, err := os.ReadFile(filepath.Join(s.hosts[0].root, at))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range s.hosts {
		if h != s.hosts[0] {
			h.write(t, at, string(key))
		}
		h.write(t, "root/former-key", string(key))
	}
}

// configure writes the page's file on all hosts. Their interface is host0.
func configure(t *testing.T, s *site) {
	found := regexp.MustCompile("(?s)`/etc/doyen/agent.yaml`, .*?```yaml\n(.*?)```").FindSubmatch(page(t, "operations.md"))
	if found == nil {
		t.Fatal("the page has no configuration")
	}
	for _, h := range s.hosts {
		h.write(t, "etc/doyen/agent.yaml", strings.Replace(string(found[1]), "bind: eth0", "bind: host0", 1))
	}
}
