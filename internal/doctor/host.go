package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	diskWrites = 20
	diskBytes  = 4096
	// diskTime bounds checkDisk on a slow disk.
	diskTime = 5 * time.Second
	// chronySlews is chronyd's default of maxslewrate, in parts per million.
	chronySlews = 83333.333
)

// checkDisk measures writes with fsync in the directory where the agent stores its promises.
func (d *Doctor) checkDisk(context.Context) []Finding {
	if m, wrong := d.mistake("data-dir"); wrong && m.Owner == 0 || d.config.DataDir == "" {
		return nil
	}
	dir := settings.Nearest(d.config.DataDir, os.Stat)
	took, err := d.fsyncs(dir)
	if err != nil {
		return []Finding{{"disk", Error, "can't write to " + dir, err.Error(), "free space, change the directory's owner or mode, or name another --data-dir"}}
	}
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	what := fmt.Sprintf("%d writes with fsync in %s: median %s, worst %s", len(took), dir, round(median), round(worst))
	limit := d.config.Heartbeat / 4
	if worst > limit {
		return []Finding{{"disk", Warning, what, fmt.Sprintf("above %s, a quarter of the heartbeat: a vote waits for a write", limit),
			"put --data-dir on a faster disk, find out what else writes to it, or use a slower --profile"}}
	}
	return []Finding{ok("disk", "%s", what)}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

func (d *Doctor) fsyncs(dir string) (took []time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".doyen-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	data, began := make([]byte, diskBytes), d.tick()
	for len(took) < diskWrites && d.tick()-began < diskTime {
		at := d.tick()
		if _, err := f.WriteAt(data, 0); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, d.tick()-at)
	}
	return took, nil
}

// checkClock compares how fast chronyd may slew the clock with the drift that a lease allows.
func (d *Doctor) checkClock(context.Context) []Finding {
	const allowed = election.DefaultDrift * 1e6
	there := func(path string) bool { _, err := os.Stat(filepath.Join(d.root, path)); return err == nil }
	if !slices.ContainsFunc([]string{"usr/sbin/chronyd", "usr/bin/chronyd", "usr/local/sbin/chronyd", "sbin/chronyd"}, there) {
		return []Finding{ok("clock", "chronyd is not installed; other NTP daemons stay below the drift of 1 %% that a lease allows")}
	}
	rate, from := chronySlews, "its default"
	file, configs := "", []string{"etc/chrony/chrony.conf", "etc/chrony.conf"}
	if at := slices.IndexFunc(configs, there); at >= 0 {
		file = "/" + configs[at]
	}
	if set, at := d.maxSlewRate(file, 0); at != "" {
		rate, from = set, at
	}
	what := fmt.Sprintf("chronyd slews the clock by up to %.2f %% (%s)", rate/1e4, from)
	if rate >= allowed {
		return []Finding{{"clock", Warning, what, "a lease allows a drift of less than 1 %; above it two agents may lead at once",
			"put `maxslewrate 1000` into " + cmp.Or(file, "chrony.conf") + " and restart chronyd"}}
	}
	return []Finding{ok("clock", "%s; a lease allows less than 1 %%", what)}
}

// maxSlewRate returns the last maxslewrate in a configuration file of chrony and the files that it includes,
// and its place. The place is empty if none is set.
func (d *Doctor) maxSlewRate(path string, depth int) (rate float64, at string) {
	text, err := os.ReadFile(filepath.Join(d.root, path))
	if path == "" || err != nil || depth > 5 {
		return 0, ""
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		var included []string
		switch strings.ToLower(words[0]) {
		case "maxslewrate":
			if v, err := strconv.ParseFloat(words[1], 64); err == nil {
				rate, at = v, "maxslewrate in "+path
			}
		case "include":
			included, _ = filepath.Glob(filepath.Join(d.root, words[1]))
		case "confdir":
			for _, dir := range words[1:] {
				more, _ := filepath.Glob(filepath.Join(d.root, dir, "*.conf"))
				included = append(included, more...)
			}
		}
		for _, file := range included {
			if r, where := d.maxSlewRate(strings.TrimPrefix(file, strings.TrimSuffix(d.root, "/")), depth+1); where != "" {
				rate, at = r, where
			}
		}
	}
	return rate, at
}

// checkSockets checks which users may connect to the sockets, and which could replace them.
func (d *Doctor) checkSockets(context.Context) (all []Finding) {
	for _, s := range d.config.Sockets() {
		if s.Path != "" {
			all = append(all, d.checkSocket(s))
		}
	}
	return all
}

func (d *Doctor) checkSocket(s settings.Socket) Finding {
	path, dir := s.Path, settings.Nearest(filepath.Dir(s.Path), os.Stat)
	info, err := os.Stat(dir)
	if err != nil {
		return Finding{"socket", Error, "the directory of " + path + " can't be examined", err.Error(), "correct --" + s.Flag}
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		result := Warning // the group may be the agent's own
		if info.Mode().Perm()&0o002 != 0 {
			result = Error
		}
		return Finding{"socket", result, dir + " can be written by others", fmt.Sprintf("its mode is %04o: they could put their own socket in this place", info.Mode().Perm()),
			"run: chmod go-w " + dir}
	}
	to, err := s.Sharing()
	if err != nil {
		return Finding{"socket", Error, "nobody could be given " + path, err.Error(), "correct --" + s.Flag + "-group"}
	}
	info, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) != nil:
		result, do := Error, "give "+dir+" to the agent's user, name another --"+s.Flag+", or run this as root"
		if dir != filepath.Dir(path) {
			result, do = Warning, "make "+filepath.Dir(path)+" for the agent's user, or have systemd make it (RuntimeDirectory=)"
		}
		return Finding{"socket", result, path + " can't be made", "this user may not write to " + dir, do}
	case errors.Is(err, fs.ErrNotExist):
		return ok("socket", "%s is to be made, with mode %04o", path, to.Mode)
	case err != nil:
		return Finding{"socket", Error, path + " can't be examined", err.Error(), "run this as root, or as the agent's user"}
	case info.Mode().Type() != fs.ModeSocket:
		return Finding{"socket", Error, path + " is not a socket", "another kind of file is there, and Doyen does not remove it", "move it away, or name another --" + s.Flag}
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if mode := info.Mode().Perm(); mode != to.Mode || is && to.Group >= 0 && int(stat.Gid) != to.Group {
		configured := fmt.Sprintf("it is configured as %04o", to.Mode)
		if to.Group >= 0 {
			configured += fmt.Sprintf(" and group %d", to.Group)
		}
		return Finding{"socket", Warning, path + " is not shared as configured", fmt.Sprintf("its mode is %04o%s, and %s", mode, owner(stat), configured),
			"run `doyen restart`, which makes it again"}
	}
	return ok("socket", "%s: mode %04o%s", path, info.Mode().Perm(), owner(stat))
}

func owner(stat *syscall.Stat_t) string {
	if stat == nil {
		return ""
	}
	return fmt.Sprintf(", user %d, group %d", stat.Uid, stat.Gid)
}

// checkRecord checks whether a record can be kept in memory. If the running agent warns about that, checkAgent
// has reported it.
func (d *Doctor) checkRecord(context.Context) []Finding {
	dir := cmp.Or(d.config.RecordDir, filepath.Dir(d.config.Socket))
	at := settings.Nearest(dir, os.Stat)
	var why error
	switch info, err := os.Stat(at); {
	case d.runs():
		if slices.ContainsFunc(d.own.Warnings, func(w api.Warning) bool { return w.Code == "no_record" }) {
			return nil
		}
	case err != nil:
		why = err
	case at != dir || os.Geteuid() == 0 && !ownedBy(info, 0): // the directory does not exist yet, or root asks for an agent of another user
		why = record.InMemory(at)
	default:
		why = errors.Unwrap(record.Check(at)) // without the advice that the error contains
	}
	if why != nil {
		return []Finding{{"record", Warning, "no record can be kept in " + dir, why.Error(), "name a directory below /run, or another tmpfs, with --record-dir"}}
	}
	return []Finding{ok("record", "%s: an agent that is started again within its lease goes on leading", dir)}
}

func ownedBy(info fs.FileInfo, uid uint32) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && stat.Uid == uid
}

// checkUnit checks the agent's systemd unit. If the agent runs in no unit, it checks doyen.service.
func (d *Doctor) checkUnit(ctx context.Context) []Finding {
	unit := d.unit()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := d.show(ctx, unit)
	is := properties(out)
	if err != nil || is["LoadState"] != "loaded" {
		return []Finding{ok("unit", "systemd has no unit %s", unit)}
	}
	var all []Finding
	warn := func(key, why, do string) {
		all = append(all, Finding{"unit", Warning, unit + " has " + key + "=" + is[key], why, do + " (`systemctl edit " + unit + "`), then `systemctl daemon-reload`"})
	}
	if is["RuntimeDirectory"] != "" && is["RuntimeDirectoryPreserve"] == "no" {
		warn("RuntimeDirectoryPreserve", "systemd removes the record at each restart, which then costs a lease", "set RuntimeDirectoryPreserve=restart")
	}
	if is["KillMode"] != "mixed" {
		warn("KillMode", "at a stop the hook may be killed before it has done its work, or processes remain", "set KillMode=mixed")
	}
	if is["Restart"] == "no" {
		warn("Restart", "nothing starts the agent again after it has failed", "set Restart=on-failure")
	}
	if is["UnitFileState"] == "disabled" {
		all = append(all, Finding{"unit", Warning, unit + " is disabled", "nothing starts the agent when this host boots", "run: systemctl enable " + unit})
	}
	if len(all) == 0 {
		all = append(all, ok("unit", "%s: KillMode=%s, Restart=%s, RuntimeDirectoryPreserve=%s", unit, is["KillMode"], is["Restart"], is["RuntimeDirectoryPreserve"]))
	}
	return all
}

// properties parses what systemctl shows of a unit.
func properties(out string) map[string]string {
	is := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		is[key] = value
	}
	return is
}

// ownUnit is the unit in the packages.
const ownUnit = "doyen.service"

// unit returns the systemd unit of the running agent, found by its control group.
func (d *Doctor) unit() string {
	text, _ := os.ReadFile(filepath.Join(d.root, "proc", strconv.Itoa(d.own.PID), "cgroup"))
	for _, part := range slices.Backward(strings.FieldsFunc(string(text), func(r rune) bool { return r == '/' || r == '\n' })) {
		if strings.HasSuffix(part, ".service") && d.runs() && !strings.HasPrefix(part, "user@") {
			return part
		}
	}
	return ownUnit
}

// checkKey checks that the cluster key is safe from other users, and that the running agent uses it.
func (d *Doctor) checkKey(context.Context) []Finding {
	if bad, wrong := d.mistake("key-file"); wrong {
		return []Finding{{"key", bad.result(), "the cluster key can't be used", bad.Problem, bad.Hint}}
	}
	if path := d.config.KeyFile; path != "" {
		keys, bad := settings.ReadKeys(path)
		if bad != nil {
			return []Finding{{"key", Error, "the cluster key can't be used", bad.Problem, bad.Hint}}
		}
		own, is := d.report(d.own.ID)
		if is && own.Name == d.config.Name && !sameKeys(settings.DescribeKeys(keys), own.Keys) {
			return []Finding{{"key", Warning, "the running agent uses other keys than " + path, "the file has changed since it was read, or is not the agent's",
				"run `doyen reload`, or restore the file; `doyen keys list` shows which agent has which key"}}
		}
		return []Finding{ok("key", "%s has %d, and other users can't read it", path, len(keys))}
	}
	if others := slices.ContainsFunc(d.config.Voters, func(v string) bool { return v != d.config.Name }); others || len(d.config.Join) > 0 {
		return []Finding{{"key", Warning, "there is no cluster key", "every user of this host could start an agent that joins and leads", "give all agents the same --key-file (`doyen keygen --out FILE`)"}}
	}
	return []Finding{ok("key", "none is needed: this agent is alone on loopback")}
}

func sameKeys(a, b []api.Key) bool {
	sorted := func(keys []api.Key) []api.Key {
		return slices.SortedFunc(slices.Values(keys), func(x, y api.Key) int { return strings.Compare(x.Fingerprint, y.Fingerprint) })
	}
	return slices.Equal(sorted(a), sorted(b))
}
