// Package doctor examines the agent of this host. A Doctor checks whether the agent can start here, and
// whether what the agent depends on works. A Bundle collects what a bug report needs.
//
// Examine changes nothing that lasts: it listens on ports for a moment, connects to ports of other agents, and
// writes and removes one file in the data directory. No single check takes longer than a few seconds. An agent
// that passes all checks may still not lead: other hosts have to examine their own disks, and the network
// between them. A Bundle never contains a key.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/each"
)

const (
	askTimeout  = 5 * time.Second
	nameTimeout = 3 * time.Second
	dialTimeout = 2 * time.Second
)

// The results of a check.
const (
	OK      = "ok"
	Warning = "warning"
	Error   = "error" // the agent can't start, or its guarantees may not hold
)

// Finding is the outcome of one check. Why and Do are empty if there is no problem.
type Finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	What   string `json:"what"`
	Why    string `json:"why"`
	Do     string `json:"do"`
}

// Mistake is something wrong with the configuration. If root runs the doctor and a file belongs to another
// user, Owner is that user: for an agent that runs as Owner, the file is right. Otherwise Owner is 0.
type Mistake struct {
	Flag, Problem, Hint string
	Owner               uint32
}

// Doctor examines one agent.
type Doctor struct {
	config   settings.Config
	resolved bool // if false, config is incomplete because of a mistake
	mistakes []Mistake
	from     string // the source of config, for example "as the running agent has it"; empty: flags
	client   *client.Client

	// What the running agent answers; zero: none runs.
	own     api.Agent
	silent  bool // an agent runs, but does not answer
	members []api.Member
	agents  []api.AgentReport

	root    string // the root of the file system
	show    func(ctx context.Context, unit string) (string, error)
	journal func(ctx context.Context, unit string) ([]byte, error)
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	tick    func() time.Duration // returns the time since the doctor was made
}

// New returns a doctor of the agent that runs, or will run, with the configuration. mistakes are in that
// configuration, and from is its source.
func New(c settings.Config, mistakes []Mistake, from string) *Doctor {
	began := time.Now()
	d := &Doctor{mistakes: mistakes, from: from, root: "/", show: systemctl, journal: journal, tick: func() time.Duration { return time.Since(began) },
		resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}}
	var err error
	d.config, err = c.Resolve()
	d.resolved = err == nil
	d.client = client.New(d.config.Socket)
	return d
}

func systemctl(ctx context.Context, unit string) (string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", "show", unit,
		"--property=LoadState,KillMode,Restart,RuntimeDirectory,RuntimeDirectoryPreserve,UnitFileState,User,SupplementaryGroups").Output()
	return string(out), err
}

// journal returns the newest log lines of a unit from systemd's journal.
func journal(ctx context.Context, unit string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, "journalctl", "--unit="+unit, "--lines=1000", "--no-pager", "--quiet", "--output=short-iso-precise").Output()
	if err == nil && len(text) == 0 {
		err = errors.New("the journal has no line of " + unit)
	}
	return text, err
}

// Examine makes all checks.
func (d *Doctor) Examine(ctx context.Context) []Finding {
	defer d.client.Close()
	running := d.checkAgent(ctx)
	if info, err := os.Stat(d.config.Socket); err == nil && d.runs() { // a running agent has started with these files, so they are right for its user
		d.mistakes = slices.DeleteFunc(slices.Clone(d.mistakes), func(m Mistake) bool { return m.Owner != 0 && ownedBy(info, m.Owner) })
	}
	all := CheckConfig(d.mistakes)
	if len(all) == 0 {
		all = append(all, ok("configuration", "%s", strings.TrimSuffix(fmt.Sprintf("agent %s of cluster %s, heartbeat %s, lease %s, %s", d.config.Name, d.config.Cluster, d.config.Heartbeat, d.config.Lease, d.from), ", ")))
	}
	all = append(all, running...)
	for _, check := range []func(context.Context) []Finding{d.checkPorts, d.checkNames, d.checkPeers, d.checkDisk, d.checkClock, d.checkSockets, d.checkRecord, d.checkUnit, d.checkKey} {
		all = append(all, check(ctx)...)
	}
	return all
}

func ok(check, format string, args ...any) Finding {
	return Finding{Check: check, Result: OK, What: fmt.Sprintf(format, args...)}
}

func (d *Doctor) runs() bool { return d.own.ID != "" }

// CheckConfig reports the mistakes of a configuration, except those in the key file, which have their own
// check.
func CheckConfig(all []Mistake) []Finding {
	var found []Finding
	for _, m := range all {
		switch m.Flag {
		case "key-file":
		case "":
			found = append(found, Finding{"configuration", Error, "a setting is wrong", m.Problem, m.Hint})
		default:
			found = append(found, Finding{"configuration", m.result(), "--" + m.Flag + " is wrong", m.Problem, m.Hint})
		}
	}
	return found
}

// result returns Warning if the setting may be right for the agent's user (Owner), else Error.
func (m Mistake) result() string {
	if m.Owner != 0 {
		return Warning
	}
	return Error
}

// mistake returns the mistake in the setting of that flag, if there is one.
func (d *Doctor) mistake(flag string) (Mistake, bool) {
	return each.First(d.mistakes, func(m Mistake) bool { return m.Flag == flag })
}

// checkAgent asks whether the agent runs, and for its warnings.
func (d *Doctor) checkAgent(ctx context.Context) []Finding {
	const check = "agent"
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	own, err := d.client.Agent(ctx)
	if away, is := errors.AsType[*client.UnreachableError](err); is && (strings.HasPrefix(away.Reason, "no socket exists") || strings.HasPrefix(away.Reason, "no agent listens")) {
		return []Finding{ok(check, "none runs with this socket: this is before a start (%s)", away.Reason)}
	} else if is {
		d.silent = true
		return []Finding{{check, Error, "the agent of this host can't be asked", away.Reason, away.Hint}}
	}
	if err != nil {
		return []Finding{{check, Error, "the agent of this host can't be asked", err.Error(), "run `doyen status`"}}
	}
	d.own = own
	if d.members, err = d.client.Members(ctx); err == nil {
		d.agents, err = d.client.AgentsBack(ctx)
	}
	all := []Finding{ok(check, "%s runs, pid %d, version %s, quorum %s", own.Name, own.PID, own.Version, own.Quorum.State)}
	if err != nil {
		all = append(all, Finding{check, Error, "the agent does not answer every question", err.Error(), "see its log"})
	}
	if c := d.config; d.resolved && (own.Name != c.Name || own.Cluster != c.Cluster) {
		all = append(all, Finding{check, Warning, "it does not run with this configuration",
			fmt.Sprintf("it is %s of cluster %s, and the configuration describes %s of cluster %s", own.Name, own.Cluster, c.Name, c.Cluster),
			"give the flags, the environment and the --config of that agent"})
	}
	for _, w := range own.Warnings {
		all = append(all, Finding{check, Warning, "the agent warns: " + w.Code, w.Message, "see Warnings in docs/operations.md"})
	}
	return all
}

// checkPorts tries to listen on each port. A port in use is right if the running agent uses it: the ports that
// it advertises and those of --http and --agent-check, without which it could not have started.
func (d *Doctor) checkPorts(context.Context) []Finding {
	own := map[string]bool{}
	for _, m := range d.members {
		if m.ID == d.own.ID {
			own[portOf(m.GossipAddr)], own[portOf(m.PeerAddr)] = true, true
		}
	}
	var all []Finding
	for _, p := range d.config.Ports() {
		err := p.Try()
		bad, _ := errors.AsType[*settings.Error](err)
		ours := d.runs() && err != nil && settings.InUse(err) && (own[portOf(p.Address)] || p.Flag == "http" || p.Flag == "agent-check")
		switch {
		case err == nil && portOf(p.Address) == "0":
			all = append(all, ok("ports", "--%s %s %s: any free port", p.Flag, p.Network, p.Address))
		case err == nil:
			all = append(all, ok("ports", "--%s %s %s is free", p.Flag, p.Network, p.Address))
		case d.silent && settings.InUse(err):
			all = append(all, ok("ports", "--%s %s %s is in use, most probably by the agent that does not answer", p.Flag, p.Network, p.Address))
		case ours:
			all = append(all, ok("ports", "--%s %s %s is in use by the agent of this host", p.Flag, p.Network, p.Address))
		default:
			all = append(all, Finding{"ports", Error, "--" + p.Flag + " " + p.Network + " " + p.Address + " can't be used", bad.Problem, bad.Hint})
		}
	}
	return all
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// checkNames resolves the host of each --join.
func (d *Doctor) checkNames(ctx context.Context) []Finding {
	all := together(d.config.Join, func(join string) []Finding { return d.checkName(ctx, join) })
	if len(all) == 0 {
		all = append(all, ok("names", "no --join needs the name service"))
	}
	return all
}

func (d *Doctor) checkName(ctx context.Context, join string) []Finding {
	host, _ := parts(join)
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	began := d.tick()
	found, err := d.lookUp(ctx, host)
	took := d.tick() - began
	switch {
	case err != nil:
		return []Finding{{"names", Error, "--join " + join + " can't be resolved", err.Error(), "correct the name, /etc/hosts or the name service, or give an IP address"}}
	case took > nameTimeout/3:
		return []Finding{{"names", Warning, "--join " + join + " takes long to resolve", "it took " + took.Round(time.Millisecond).String(), "check the name servers, or give an IP address"}}
	}
	return []Finding{ok("names", "--join %s is %s", join, found[0])}
}

// lookUp returns the addresses of a host, at least one if there is no error.
func (d *Doctor) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	found, err := d.resolve(ctx, host)
	if err == nil && len(found) == 0 {
		err = errors.New("it has no address")
	}
	return found, err
}

// parts splits HOST[:PORT]. The default port replaces a missing one.
func parts(join string) (host, port string) {
	if host, port, err := net.SplitHostPort(join); err == nil {
		return host, port
	}
	return strings.Trim(join, "[]"), strconv.Itoa(settings.DefaultGossipPort)
}
