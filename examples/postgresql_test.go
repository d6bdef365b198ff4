//go:build linux

package examples_test

import (
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// database runs a separate PostgreSQL server, only on a Unix socket. It returns the environment for psql.
func database(t *testing.T) []string {
	t.Helper()
	need(t, "psql", "sh")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian does not put them on the path
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skip("the server of PostgreSQL is not installed")
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "doyen-pg") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("there is no user postgres to run the server")
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "doyen", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-h", "", "-F")
	server.SysProcAttr, server.Dir = attr, dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT) // asks for a fast shutdown
		_ = server.Wait()
	})
	env := []string{"PGHOST=" + dir, "PGUSER=doyen", "PGDATABASE=postgres", "PGCONNECT_TIMEOUT=5"}
	await(t, "the server", func() bool { code, _ := run(t, env, "psql", "-c", "SELECT 1"); return code == 0 })
	return env
}

func TestALateWriterOfAnOldTermIsRefused(t *testing.T) {
	t.Parallel()
	env := database(t)
	for range 2 { // the file can be run twice
		if code, out := run(t, env, "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "-f", "postgresql/fence.sql"); code != 0 {
			t.Fatal(out)
		}
	}
	payout := func(term, note string, want int, says string) {
		t.Helper()
		code, out := run(t, append(env, "DOYEN_TERM="+term), "postgresql/payout", note)
		if code != want || !strings.Contains(out, says) {
			t.Errorf("term %s: %d %s, want %d with %q", term, code, out, want, says)
		}
	}
	payout("7", "a's", 0, "")
	payout("7", "a's again; it's", 0, "")
	payout("9", "b's", 0, "")
	payout("7", "a's, late", 3, "term 7 of payments has ended: term 9 has written")
	payout("9", "b's again", 0, "")
	payout("", "nobody's", 2, "not run by doyen run")
	_, rows := run(t, env, "psql", "-At", "-c", "SELECT term, note FROM payouts ORDER BY id")
	if want := "7|a's\n7|a's again; it's\n9|b's\n9|b's again\n"; rows != want {
		t.Errorf("rows:\n%s\nwant:\n%s", rows, want)
	}
}

// Without a lock this goes wrong: the old leader has asked, but not written yet, when the new leader comes.
func TestWritesOfTwoTermsNeverMix(t *testing.T) {
	t.Parallel()
	env := database(t)
	if code, out := run(t, env, "psql", "--quiet", "-f", "postgresql/fence.sql"); code != 0 {
		t.Fatal(out)
	}
	old := exec.Command("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "-At")
	old.Env = append(os.Environ(), env...)
	in, err := old.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := old.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = old.Wait() })
	tell := func(sql string) {
		if _, err := in.Write([]byte(sql + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	tell("BEGIN; SELECT fence('payments', 7) \\g /dev/null\n\\echo asked")
	asked := make([]byte, len("asked\n"))
	if _, err := io.ReadFull(out, asked); err != nil || string(asked) != "asked\n" {
		t.Fatalf("the old leader's session said %q, %v", asked, err)
	}
	successor := make(chan string, 1)
	go func() {
		_, said := run(t, append(env, "DOYEN_TERM=8"), "postgresql/payout", "the successor's")
		successor <- said
	}()
	await(t, "the successor to wait for the lock", func() bool {
		_, n := run(t, env, "psql", "-At", "-c", "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
		return strings.TrimSpace(n) == "1"
	})
	tell("INSERT INTO payouts (term, note) VALUES (7, 'the old leader''s'); COMMIT;")
	if said := <-successor; said != "" {
		t.Errorf("the successor: %s", said)
	}
	if _, rows := run(t, env, "psql", "-At", "-c", "SELECT term FROM payouts ORDER BY id"); rows != "7\n8\n" {
		t.Errorf("in the order %q", rows)
	}
}
