package main

import (
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/jobs"
)

// command describes one subcommand. The file help/NAME.txt has its help text.
type command struct {
	name     string
	args     string // as the help shows the arguments
	min, max int    // the number of arguments
	words    []string
	run      func(*invocation) error
	flags    []cli.Flag // the command's own flags
}

// starts reports whether the command starts another program, which follows after "--".
func (c command) starts() bool { return strings.HasSuffix(c.args, "-- CMD ARG…") }

// commands lists every subcommand but help.
func commands() []command {
	return []command{
		{name: "agent", run: runAgent, flags: append([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "YAML `FILE` with any of the settings below; its keys are the names of the flags [$DOYEN_CONFIG]"},
			truthFlag("check-config", "validate the configuration, print it as a configuration file, start nothing"),
			truthFlag("all", "with --check-config: print also what has its default"),
			truthFlag("reset-genesis", "drop a first roster that is still pending; a committed one is kept")}, settingFlags()...)},
		{name: "act", run: runAct, flags: append([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "YAML `FILE` with any of the settings below, the agent's own [$DOYEN_CONFIG]"}}, settingFlags()...)},
		{name: "leader", args: "[ELECTION]", max: 1, run: leader, flags: []cli.Flag{truthFlag("meta", "print the leader's meta in place of its name")}},
		{name: "is-leader", args: "[ELECTION]", max: 1, run: isLeader},
		{name: "status", run: status, flags: []cli.Flag{truthFlag("all", "ask every agent about itself: version, drained, warnings, cluster keys")}},
		{name: "members", run: members},
		{name: "elections", run: elections},
		{name: "campaigns", run: campaigns},
		{name: "word", args: "ELECTION", min: 1, max: 1, run: word, flags: []cli.Flag{truthFlag("delete", "delete the word: the election then remembers nothing")}},
		{name: "jobs", args: "[NAME]", max: 1, run: showJobs, flags: []cli.Flag{truthFlag("reset-done", "NAME is done up to now, not up to a time in the future")}},
		{name: "watch", args: "[ELECTION]", max: 1, run: watch},
		{name: "history", args: "[ELECTION]", max: 1, run: history, flags: []cli.Flag{
			integerFlag("limit", "show only the newest `N` changes, 1 to 1024 (default: 100)", 0, 1, mostChanges),
			truthFlag("evidence", "also show what this agent knew at each change"),
			truthFlag("report", "show for how much of the time there was a leader, instead of the changes")}},
		{name: "plan", args: "[--down NAME...] [--cut A,B|C,D]", max: maxPlanned, run: planned, flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "down", Usage: "`NAME` of a host that goes down, repeatable"},
			&cli.StringFlag{Name: "cut", Usage: "`SIDES` that can't reach each other, as 'a,b|c,d'"}}},
		{name: "drill", args: "[ELECTION] [--transfer|--stop|--kill]", max: 1, run: drill, flags: drillFlags()},
		{name: "doctor", run: examine, flags: append([]cli.Flag{&cli.StringFlag{Name: "config", Usage: "YAML `FILE` of the agent [$DOYEN_CONFIG]"}}, settingFlags()...)},
		{name: "debug", run: debugBundle, flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "YAML `FILE` of the agent, if it does not answer [$DOYEN_CONFIG]", DefaultText: packaged},
			&cli.StringFlag{Name: "out", Usage: "write to a new `FILE`", DefaultText: "doyen-debug-TIME.tar.gz here"},
			durationFlag("cpu-profile", "`TIME` of the CPU profile, 1s to 30s", 5*time.Second, time.Second, 30*time.Second)}},
		{name: "run", args: "ELECTION -- CMD ARG…", max: math.MaxInt, run: runRun, flags: runFlags()},
		{name: "once", args: "KEY|SERIES/KEY -- CMD ARG…", max: math.MaxInt, run: once, flags: append(commandFlags(),
			truthFlag("no-wait", "if another host runs it, exit with 75 at once"),
			truthFlag("retry", "if its starter died or was stopped, run it again, under a higher DOYEN_TERM"),
			truthFlag("allow-older", "exit with 0 in place of 77 for a key that a higher one has skipped"))},
		{name: "cron", args: "NAME 'SPEC' -- CMD ARG…", max: math.MaxInt, run: cron, flags: append(commandFlags(),
			&cli.StringFlag{Name: "tz", Usage: "`ZONE` of SPEC, such as Europe/Berlin (default: UTC)"},
			durationFlag("late", "`TIME` after which a start that is due counts as missed", jobs.DefaultLate, jobs.LeastLate, longestGrace),
			&cli.StringFlag{Name: "missed", Usage: "`WHICH` of several that are due and not late run: last, all or none", DefaultText: string(jobs.Latest)},
			&cli.StringFlag{Name: "on-death", Usage: "`WHAT` to do if a run's starter died before it wrote how CMD ended: skip or rerun", DefaultText: "skip"},
			durationFlag("jitter", "`TIME` by up to which all starts are later, by an amount that depends on NAME", 0, 0, 24*time.Hour))},
		{name: "resign", args: "[ELECTION]", max: 1, run: resign},
		{name: "transfer", args: "[ELECTION] --to NAME", max: 1, run: transfer, flags: []cli.Flag{&cli.StringFlag{Name: "to", Usage: "`NAME` of the agent that should lead"}}},
		{name: "drain", args: "on|off [NAME]", min: 1, max: 2, words: []string{"on", "off"}, run: drain, flags: []cli.Flag{
			truthFlag("force", "drain it even if an expected election has no other candidate"),
			durationFlag("jobs", "`TIME` to wait first, at most, until what `doyen once` and `doyen cron` run on this host has ended", 0, 0, longestGrace)}},
		{name: "leave", run: leave},
		{name: "reload", run: reload},
		{name: "restart", run: restartAgent},
		{name: "voters", args: "[list] | add|remove|replace NAME | cancel | restore", max: 2, words: []string{"list", "add", "remove", "replace", "cancel", "restore"}, run: voters,
			flags: []cli.Flag{&cli.StringFlag{Name: "id", Usage: "add, replace: peer `ID` that the agent must have"}}},
		{name: "settings", args: "[set KEY=VALUE...]", max: 3, words: []string{"set"}, run: agreedSettings},
		{name: "allow", args: "ELECTION", max: 1, run: allow, flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "agents", Usage: "`NAMES` of the agents that may lead it, with commas"},
			&cli.StringSliceFlag{Name: "id", Usage: "peer `IDS` of agents that may lead it, instead of their names or besides them"},
			integerFlag("max-priority", "highest `PRIORITY` of a candidate (default: any)", 0, 1, election.MaxPriority)}},
		{name: "log-level", args: "debug|info|warn|error", min: 1, max: 1, words: []string{"debug", "info", "warn", "error"}, run: setLogLevel,
			flags: []cli.Flag{durationFlag("for", "`TIME` for which it counts, 1s to 24h", 5*time.Minute, time.Second, 24*time.Hour)}},
		{name: "keygen", run: keygen, flags: []cli.Flag{&cli.StringFlag{Name: "out", Usage: "write the key to a new `FILE` (mode 0600) and not to stdout"}}},
		{name: "keys", args: "list|rotate|add FILE|use FINGERPRINT|remove FINGERPRINT", min: 1, max: 1 + maxPlanned, words: []string{"list", "rotate", "add", "use", "remove"}, run: keys,
			flags: []cli.Flag{
				&cli.StringSliceFlag{Name: "with", Usage: "rotate: `NAME` or ID of an agent that gets the key besides the voters, repeatable"},
				&cli.StringSliceFlag{Name: "without", Usage: "rotate: `NAME` or ID of an agent that gets no key, repeatable"},
				&cli.StringSliceFlag{Name: "only", Usage: "rotate: `NAME` or ID of an agent that gets the key; the others get none, repeatable"},
				truthFlag("force", "use, rotate: go on even if agents lack the key or can't be reached: they are cut off")}},
		{name: "version", run: printVersion},
		{name: "completion", args: "bash|zsh|fish", min: 1, max: 1, words: []string{"bash", "zsh", "fish"}, run: completion},
	}
}
