package settings

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/base/each"
)

// Setting is one value of a Config. The flag of `doyen agent`, the key of the configuration file
// and the testbed's scenarios use the same name for it.
type Setting struct {
	Name string
	// Field returns a pointer into a configuration: *string, *bool, *int, *time.Duration or
	// *[]string. The type does not depend on the configuration.
	Field func(*Config) any
	// Choices are the allowed texts; nil: all texts are allowed.
	Choices []string
	// Found: a zero value means "not given", and Resolve then finds a value.
	Found bool
	// Live: a reload applies a change of the setting. Any other setting needs a restart.
	Live bool
	// Help explains the setting in one line. Its value's placeholder is in backquotes.
	Help string
}

// All returns every setting, in the order in which they are shown.
func All() []Setting { return slices.Concat(settingsOfPlaces(), settingsOfElections()) }

// settingsOfPlaces are the settings of the agent's name, its files, its sockets, its addresses and its cluster.
func settingsOfPlaces() []Setting {
	return []Setting{
		{Name: "name", Field: func(c *Config) any { return &c.Name }, Found: true,
			Help: "`NAME` of this agent, unique in the cluster (default: the host name)"},
		{Name: "cluster", Field: func(c *Config) any { return &c.Cluster }, Help: "`NAME` of the cluster; agents of another cluster are refused"},
		{Name: "data-dir", Field: func(c *Config) any { return &c.DataDir }, Found: true,
			Help: "`DIR` for the agent's identity and its promises as a voter (default: /var/lib/doyen as root, else $XDG_STATE_HOME/doyen)"},
		{Name: "socket", Field: func(c *Config) any { return &c.Socket }, Found: true,
			Help: "`PATH` of the socket for the other commands (default: /run/doyen/doyen.sock as root, else $XDG_RUNTIME_DIR/doyen/doyen.sock)"},
		{Name: "socket-mode", Field: func(c *Config) any { return &c.SocketMode }, Choices: socketModes,
			Help: "`MODE` of the socket, 0600, 0660 or 0666: who may connect, and so read"},
		{Name: "socket-group", Field: func(c *Config) any { return &c.SocketGroup },
			Help: "`GROUP` that owns the socket, a name or a number (default: the agent's)"},
		{Name: "read-socket", Field: func(c *Config) any { return &c.ReadSocket },
			Help: "`PATH` of a second socket, on which nothing can be changed (default: none)"},
		{Name: "read-socket-mode", Field: func(c *Config) any { return &c.ReadSocketMode }, Choices: socketModes,
			Help: "`MODE` of that socket: 0600, 0660 or 0666"},
		{Name: "read-socket-group", Field: func(c *Config) any { return &c.ReadSocketGroup },
			Help: "`GROUP` that owns that socket (default: the agent's)"},
		{Name: "record-dir", Field: func(c *Config) any { return &c.RecordDir },
			Help: "`DIR` in memory (tmpfs) for the record by which a restarted agent goes on leading (default: that of the socket)"},
		{Name: "bind", Field: func(c *Config) any { return &c.Bind }, Help: "`ADDR` to listen on, or an interface, such as eth0"},
		{Name: "advertise", Field: func(c *Config) any { return &c.Advertise }, Found: true,
			Help: "`ADDR` at which the other agents reach this host (default: --bind; for 0.0.0.0 and :: an address of this host)"},
		{Name: "gossip-port", Field: func(c *Config) any { return &c.GossipPort }, Help: "`PORT` for gossip, TCP and UDP; 0 for any free one"},
		{Name: "peer-port", Field: func(c *Config) any { return &c.PeerPort }, Help: "`PORT` for the direct connections, TCP; 0 for any free one"},
		{Name: "join", Field: func(c *Config) any { return &c.Join }, Live: true,
			Help: "`HOST[:PORT]` of any other agent, repeatable; retried forever"},
		{Name: "key-file", Field: func(c *Config) any { return &c.KeyFile }, Live: true,
			Help: "`FILE` with the cluster key, required unless --bind is loopback (default: none)"},
	}
}

// settingsOfElections are the settings of what the agent does.
func settingsOfElections() []Setting {
	return []Setting{
		{Name: "voters", Field: func(c *Config) any { return &c.Voters },
			Help: "`NAMES` of the first roster, a,b,c, the same on every agent (default: this agent alone, unless --join is given)"},
		{Name: "quorum", Field: func(c *Config) any { return &c.Quorum },
			Help: "a leader needs a majority of the voters; --quorum=false is for advisory use, two agents may lead then"},
		{Name: "algorithm", Field: func(c *Config) any { return &c.Algorithm }, Choices: []string{"bully", "ring"},
			Help: "`NAME` of the election algorithm: bully or ring"},
		{Name: "priority", Field: func(c *Config) any { return &c.Priority }, Live: true,
			Help: "`NUMBER`; the candidate with the highest leads; 0 never leads"},
		{Name: "preempt", Field: func(c *Config) any { return &c.Preempt }, Live: true,
			Help: "a leader hands over to a candidate with a strictly higher priority"},
		{Name: "preempt-delay", Field: func(c *Config) any { return &c.PreemptDelay }, Live: true,
			Help: "`TIME` for which a higher-priority candidate must be present before the leader hands over"},
		{Name: "candidate", Field: func(c *Config) any { return &c.Candidate }, Live: true,
			Help: "be a candidate in the election \"default\" on behalf of this host"},
		{Name: "profile", Field: func(c *Config) any { return &c.Profile }, Choices: []string{"local", "lan", "wan"},
			Help: "`NAME`: local, lan or wan; sets --heartbeat and --lease to 50ms/300ms, 200ms/1.2s or 1s/6s"},
		{Name: "heartbeat", Field: func(c *Config) any { return &c.Heartbeat }, Found: true,
			Help: "`TIME` between heartbeats (default: the profile's)"},
		{Name: "lease", Field: func(c *Config) any { return &c.Lease }, Found: true,
			Help: "`TIME` a leadership lasts after a majority last confirmed it (default: the profile's)"},
		{Name: "on-change", Field: func(c *Config) any { return &c.OnChange }, Live: true,
			Help: "`CMD` to run when the leader of \"default\" changes (use the file for other elections), with DOYEN_ELECTION, DOYEN_EVENT, DOYEN_LEADER and DOYEN_TERM, and JSON on its stdin (default: none)"},
		{Name: "check", Field: func(c *Config) any { return &c.Check }, Live: true,
			Help: "`CMD` that shows this host's health: while it fails, the host is not a candidate in \"default\" (use the file for other elections, the whole host, and how often) (default: none)"},
		{Name: "hook-failures", Field: func(c *Config) any { return &c.HookFailures }, Live: true,
			Help: "`NUMBER` of runs of a hook for a leadership that may fail in a row, then this host hands over; 0: it leads on, and a run that failed is not repeated"},
		{Name: "act", Field: func(c *Config) any { return &c.Act }, Live: true,
			Help: "the keeper starts `doyen act`, which runs hooks and checks; --act=false where it is a separate service"},
		{Name: "act-user", Field: func(c *Config) any { return &c.ActUser },
			Help: "`USER` that doyen act runs as, a name or a number, if that is neither root nor the agent's user (default: none)"},
		{Name: "http", Field: func(c *Config) any { return &c.HTTP }, Live: true,
			Help: "`ADDR[:PORT]` of a read-only listener, port 7980 by default: /leader /livez /readyz /metrics, and a status page at / (default: none)"},
		{Name: "http-hosts", Field: func(c *Config) any { return &c.HTTPHosts },
			Help: "host `NAMES` accepted in requests to --http, besides IP addresses, localhost and this host's own names"},
		{Name: "http-api", Field: func(c *Config) any { return &c.HTTPAPI },
			Help: "--http answers GET /v1/… too, read-only: to everybody who can reach it"},
		{Name: "agent-check", Field: func(c *Config) any { return &c.AgentCheck },
			Help: "`ADDR[:PORT]` of a listener for HAProxy's agent-check, port 7981 by default: up, drain or maint (default: none)"},
		{Name: "keeper", Field: func(c *Config) any { return &c.Keeper },
			Help: "a small parent process starts the agent again at once when it dies or hangs, and the agent goes on leading (Linux)"},
		{Name: "log-level", Field: func(c *Config) any { return &c.LogLevel }, Choices: []string{"debug", "info", "warn", "error"}, Live: true,
			Help: "`LEVEL`: debug, info, warn or error"},
		{Name: "log-format", Field: func(c *Config) any { return &c.LogFormat }, Choices: []string{"text", "json"}, Help: "`FORMAT`: text or json"},
	}
}

// Env is the name of the setting's environment variable.
func (s Setting) Env() string {
	return "DOYEN_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Set parses the text and sets the value in the configuration. Commas or blanks separate the
// elements of a list. For a Found setting an empty text is refused: it probably comes from a
// variable that is not set.
func (s Setting) Set(c *Config, text string) error {
	var err error
	unset := false
	switch v := s.Field(c).(type) {
	case *string:
		*v, unset = text, text == ""
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
		unset = *v == 0
	case *[]string:
		*v = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	if unset && s.Found {
		return fmt.Errorf("%q is not a value; omit it for the default", text)
	}
	return nil
}

// JSON returns the value as JSON has it: a duration is a text, and a list is never null.
func (s Setting) JSON(c *Config) any {
	switch v := s.Field(c).(type) {
	case *time.Duration:
		return v.String()
	case *[]string:
		return append([]string{}, *v...)
	default:
		return reflect.ValueOf(v).Elem().Interface()
	}
}

// SetJSON sets the value from what JSON returned.
func (s Setting) SetJSON(c *Config, value json.RawMessage) error {
	field := s.Field(c)
	if list, ok := field.(*[]string); ok {
		*list = nil // otherwise the decoder would overwrite the old list's memory, which another Config may share
	}
	d, ok := field.(*time.Duration)
	if !ok {
		return json.Unmarshal(value, field)
	}
	var text string
	err := json.Unmarshal(value, &text)
	if err == nil {
		*d, err = time.ParseDuration(text)
	}
	return err
}

// write returns the setting as a line of a configuration file.
func (s Setting) write(c *Config) string {
	text := fmt.Sprint(s.JSON(c))
	switch v := s.Field(c).(type) {
	case *string:
		if s.Choices == nil || strings.HasPrefix(text, "0") { // without quotes, YAML would read it as a number
			text = strconv.Quote(text)
		}
	case *[]string:
		text = "[" + strings.Join(each.Of(*v, strconv.Quote), ", ") + "]"
	}
	return s.Name + ": " + text + "\n"
}

// Fprint writes the configuration as the lines of a configuration file. given is the configuration
// before Resolve: Fprint omits the settings that have their default value in given; nil: it omits none.
func (c Config) Fprint(w io.Writer, given *Config) error {
	text, standard := "", Default()
	if given != nil {
		text = "# What differs from the defaults; --all shows everything.\n"
	}
	for _, s := range All() {
		switch {
		case s.Name == "check" && c.HostCheck.Command != "":
			text += "check: " + checkText(c.HostCheck) + "\n"
		case given == nil || s.write(given) != s.write(&standard):
			text += s.write(&c)
		}
	}
	if len(c.Elections) > 0 {
		text += "elections:\n"
	}
	for _, name := range slices.Sorted(maps.Keys(c.Elections)) {
		text += c.Elections[name].lines(name)
	}
	policy, err := c.Policy()
	if err != nil {
		return err
	}
	if given == nil || !reflect.ValueOf(c.Access).IsZero() {
		text += policy.String()
	}
	_, err = io.WriteString(w, text)
	return err
}

func (e ElectionConfig) lines(name string) string {
	text := fmt.Sprintf("  %q:\n", name)
	if e.OnChange != "" {
		text += fmt.Sprintf("    on-change: %q\n", e.OnChange)
	}
	if e.Check.Command != "" {
		text += "    check: " + checkText(e.Check) + "\n"
	}
	if e.Expected || text == fmt.Sprintf("  %q:\n", name) {
		text += fmt.Sprintf("    expected: %t\n", e.Expected)
	}
	return text
}

func checkText(k health.Check) string {
	k = k.Resolved()
	text := fmt.Sprintf("{command: %q, every: %s, timeout: %s, fall: %d, rise: %d", k.Command, k.Every, k.Timeout, k.Fall, k.Rise)
	if k.KeepLast {
		text += ", keep-last: true"
	}
	return text + "}"
}

// checkChoices refuses a text that is not one of its setting's choices.
func checkChoices(c Config) error {
	for _, s := range All() {
		text, ok := s.Field(&c).(*string)
		if !ok || s.Choices == nil || slices.Contains(s.Choices, *text) {
			continue
		}
		last := len(s.Choices) - 1
		kind := s.Name[strings.LastIndex(s.Name, "-")+1:]
		return Errorf(s.Name, fmt.Sprintf("use %s or %s", strings.Join(s.Choices[:last], ", "), s.Choices[last]), "unknown %s %q", kind, *text)
	}
	return nil
}
