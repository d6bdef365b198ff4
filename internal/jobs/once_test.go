package jobs

import (
	"fmt"
	"strings"
	"testing"
)

func TestOnceExits(t *testing.T) {
	key := Config{Name: "migrate", Kind: Key}
	series := func(k string) Config { return Config{Name: "day", Kind: Series, Key: k} }
	with := func(c Config, change func(*Config)) Config { change(&c); return c }
	retry, older := func(c *Config) { c.Rerun = true }, func(c *Config) { c.AllowOlder = true }
	// call is a call of once by the next leader. Its command ends as given. If result is empty, it does not end,
	// or nothing was started.
	type call struct {
		c      Config
		result Result
		code   int
		did    []string
	}
	run := func(k string, try int, r Result) []string {
		return []string{"write", fmt.Sprintf("start %s try %d", k, try), "write", "ended " + k + " " + string(r)}
	}
	for name, calls := range map[string][]call{
		"finished, here and before": {{key, Finished, 0, append(run("migrate", 1, Finished), "exit 0")},
			{key, Finished, 0, []string{"ended migrate finished again", "exit 0"}}},
		"failed, and run again": {{key, Failed, 3, append(run("migrate", 1, Failed), "exit 3")},
			{key, TimedOut, 124, append([]string{"ended migrate failed again"}, append(run("migrate", 2, TimedOut), "exit 124")...)}},
		"died, and retried": {{key, "", 0, []string{"write", "start migrate try 1"}},
			{key, "", 0, []string{"unknown migrate", "exit 76"}}, {key, "", 0, []string{"unknown migrate", "exit 76"}},
			{with(key, retry), Finished, 0, []string{"write", "unknown migrate", "start migrate try 2", "write", "ended migrate finished", "exit 0"}}},
		"stopped": {{key, Stopped, 0, run("migrate", 1, Stopped)},
			{key, "", 0, []string{"ended migrate stopped again", "exit 76"}},
			{with(key, retry), "", 0, []string{"ended migrate stopped again", "write", "start migrate try 2"}}},
		"keys in order": {{series("9"), Finished, 0, append(run("9", 1, Finished), "exit 0")},
			{series("10"), Finished, 0, append(run("10", 1, Finished), "exit 0")},
			{series("010"), "", 0, []string{"exit 0"}},
			{series("9"), "", 0, []string{"exit 0"}},
			{series("8"), "", 0, []string{"exit 77"}},
			{with(series("8"), older), "", 0, []string{"exit 0"}}},
		"a later key passes over one that died": {{series("1"), "", 0, []string{"write", "start 1 try 1"}},
			{series("2"), Failed, 1, []string{"write", "unknown 1", "skipped 1", "start 2 try 1", "write", "ended 2 failed", "exit 1"}},
			{series("1"), "", 0, []string{"exit 76"}},
			{series("0"), "", 0, []string{"exit 77"}},
			{with(series("1"), retry), Finished, 0, append(run("1", 1, Finished), "exit 0")},
			{series("2"), Finished, 0, append(run("2", 1, Finished), "exit 0")},
			{series("1"), "", 0, []string{"exit 0"}}},
		"another kind": {{key, Finished, 0, append(run("migrate", 1, Finished), "exit 0")}, {cronConfig(nil), "", 0, []string{"refused", "exit 64"}}},
	} {
		var former *stage
		for i, c := range calls {
			s := host(t, c.c)
			s.leads(float64(i), former)
			if c.result != "" && s.job.running != nil {
				s.step(float64(i)+0.5, Ended{Result: c.result, Code: c.code})
			}
			former = &stage{text: s.text, term: s.term}
			for j, l := range s.log { // the details of a refusal are not compared
				if strings.HasPrefix(l, "refused") {
					s.log[j] = "refused"
				}
			}
			t.Logf("%s, call %d", name, i+1)
			s.want(c.did...)
		}
	}
}

func TestOnceFollows(t *testing.T) {
	a := host(t, Config{Name: "day", Kind: Series, Key: "2"}).leads(0, nil)
	for _, noWait := range []bool{false, true} {
		b := host(t, Config{Name: "day", Kind: Series, Key: "2", NoWait: noWait})
		b.step(0, Follows{Text: a.text})
		if noWait {
			b.want("exit 75")
		}
		b.want()
	}
	a.step(1, Ended{Result: Finished})
	for key, want := range map[string]string{"2": "exit 0", "1": "exit 77"} {
		b := host(t, Config{Name: "day", Kind: Series, Key: key, NoWait: true})
		b.step(1, Follows{Text: a.text})
		b.want(want)
	}
}
