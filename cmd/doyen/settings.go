package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/agent"
)

// setting is one value of an agent's configuration: a flag, an environment
// variable and a key of the configuration file.
type setting struct {
	name, usage string
	// at points into a configuration: *string, *bool, *int, *time.Duration or
	// *[]string, which is the setting's type everywhere.
	at func(*agent.Config) any
}

// unset reports a value that stands for "not given": the agent then finds one
// out by itself. Whoever writes such a value, most probably by a variable that
// is empty, must not get a default unasked. For the others an empty value is
// a value, or is refused as one.
func (s setting) unset(c *agent.Config) bool {
	switch s.name {
	case "name", "data-dir", "socket", "advertise":
		return *s.at(c).(*string) == ""
	case "heartbeat", "lease":
		return *s.at(c).(*time.Duration) == 0
	}
	return false
}

func settings() []setting {
	return []setting{
		{"name", "`NAME` of this agent, unique in the cluster (default: the host name)", func(c *agent.Config) any { return &c.Name }},
		{"cluster", "`NAME` of the cluster; agents of another cluster are refused", func(c *agent.Config) any { return &c.Cluster }},
		{"data-dir", "`DIR` for the agent's identity and its promises as a voter (default: /var/lib/doyen as root, else $XDG_STATE_HOME/doyen)", func(c *agent.Config) any { return &c.DataDir }},
		{"socket", "`PATH` of the socket for the other commands (default: /run/doyen/doyen.sock as root, else $XDG_RUNTIME_DIR/doyen/doyen.sock)", func(c *agent.Config) any { return &c.Socket }},
		{"bind", "`ADDR` to listen on", func(c *agent.Config) any { return &c.Bind }},
		{"advertise", "`ADDR` at which the other agents reach this host (default: --bind; for 0.0.0.0 and :: an address of this host)", func(c *agent.Config) any { return &c.Advertise }},
		{"gossip-port", "`PORT` for gossip, TCP and UDP; 0 for any free one", func(c *agent.Config) any { return &c.GossipPort }},
		{"peer-port", "`PORT` for the direct connections, TCP; 0 for any free one", func(c *agent.Config) any { return &c.PeerPort }},
		{"join", "`HOST[:PORT]` of any other agent, repeatable; retried forever", func(c *agent.Config) any { return &c.Join }},
		{"key-file", "`FILE` with the cluster key, required unless --bind is loopback (default: none)", func(c *agent.Config) any { return &c.KeyFile }},
		{"voters", "`NAMES` of the first roster, a,b,c, the same on every agent (default: this agent alone, unless --join is given)", func(c *agent.Config) any { return &c.Voters }},
		{"quorum", "a leader needs a majority of the voters; --quorum=false is for advisory use, two agents may lead then", func(c *agent.Config) any { return &c.Quorum }},
		{"algorithm", "`NAME` of the election algorithm: bully or ring", func(c *agent.Config) any { return &c.Algorithm }},
		{"priority", "`NUMBER`; the candidate with the highest leads; 0 never leads", func(c *agent.Config) any { return &c.Priority }},
		{"preempt", "a leader hands over to a candidate with a strictly higher priority", func(c *agent.Config) any { return &c.Preempt }},
		{"preempt-delay", "`TIME` for which a higher-priority candidate must be present before the leader hands over", func(c *agent.Config) any { return &c.PreemptDelay }},
		{"candidate", "be a candidate in the election \"default\" on behalf of this host", func(c *agent.Config) any { return &c.Candidate }},
		{"profile", "`NAME`: local, lan or wan; sets --heartbeat and --lease to 50ms/300ms, 200ms/1.2s or 1s/6s", func(c *agent.Config) any { return &c.Profile }},
		{"heartbeat", "`TIME` between heartbeats (default: the profile's)", func(c *agent.Config) any { return &c.Heartbeat }},
		{"lease", "`TIME` a leadership lasts after a majority last confirmed it (default: the profile's)", func(c *agent.Config) any { return &c.Lease }},
		{"on-change", "`CMD` to run when the leader of \"default\" changes (use the file for other elections), with DOYEN_ELECTION, DOYEN_EVENT, DOYEN_LEADER and DOYEN_TERM, and JSON on its stdin (default: none)", func(c *agent.Config) any { return &c.OnChange }},
		{"http", "`ADDR:PORT` of a read-only listener: /leader /livez /readyz /metrics, and a status page at / (default: none)", func(c *agent.Config) any { return &c.HTTP }},
		{"http-hosts", "host `NAMES` accepted in requests to --http, besides IP addresses, localhost and this host's own names", func(c *agent.Config) any { return &c.HTTPHosts }},
		{"log-level", "`LEVEL`: debug, info, warn or error", func(c *agent.Config) any { return &c.LogLevel }},
		{"log-format", "`FORMAT`: text or json", func(c *agent.Config) any { return &c.LogFormat }},
	}
}

// env is the setting's environment variable.
func (s setting) env() string {
	return "DOYEN_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// flag takes text for all but truths and lists: it is parsed here, with the
// same words wherever a value comes from.
func (s setting) flag() cli.Flag {
	defaults := agent.Default()
	switch v := s.at(&defaults).(type) {
	case *bool:
		return &cli.BoolFlag{Name: s.name, Usage: s.usage, Value: *v}
	case *[]string:
		return &cli.StringSliceFlag{Name: s.name, Usage: s.usage}
	case *string:
		return &cli.StringFlag{Name: s.name, Usage: s.usage, DefaultText: *v}
	case *time.Duration:
		return &cli.StringFlag{Name: s.name, Usage: s.usage, DefaultText: nonZero(*v)}
	case *int:
		return &cli.StringFlag{Name: s.name, Usage: s.usage, DefaultText: strconv.Itoa(*v)}
	}
	return nil
}

func nonZero(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// set parses the text and puts it into the configuration.
func (s setting) set(c *agent.Config, text string) error {
	var err error
	switch v := s.at(c).(type) {
	case *string:
		*v = text
	case *bool:
		if *v, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case *int:
		if *v, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is not an integer", text)
		}
	case *time.Duration:
		if *v, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%q is not a duration; write it with its unit, such as 200ms or 1.2s", text)
		}
	case *[]string:
		*v = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	if s.unset(c) {
		return fmt.Errorf("%q is not a value; omit it for the default", text)
	}
	return nil
}

// value is the setting as it is written in JSON.
func (s setting) value(c *agent.Config) any {
	switch v := s.at(c).(type) {
	case *time.Duration:
		return v.String()
	case *[]string:
		return append([]string{}, *v...)
	default:
		return v
	}
}
