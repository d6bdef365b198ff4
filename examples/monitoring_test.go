//go:build linux

package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// measured returns the labels of each metric of running agents, by the metric's name.
func measured(t *testing.T) map[string][]string {
	t.Helper()
	ports := loopbacks.FreePorts(t, 3)
	tr := start(t, func(name string) string {
		return fmt.Sprintf("http: 127.0.0.1:%d\nelections: {payments: {expected: true}}\n", ports[strings.Index("abc", name)])
	})
	tr.await("the warning, which has a metric while it is there", func() bool { return tr.logged("no_candidates") })
	tr.handOver(tr.leader(nil), "default") // so that each kind of message has been sent
	backup, err := tr.agents[0].client.Campaign(t.Context(), "backup")
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	if err := backup.Write(t.Context(), `{"v":1,"kind":"cron","spec":"@daily","done":"2026-11-25T00:00:00Z","last":{"at":"2026-11-25T00:00:00Z","try":1,"end":"failed","code":4,"when":"2026-11-25T00:01:00Z"},"total":{"failed":1}}`); err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, port := range ports {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for name, family := range families {
			for _, m := range family.GetMetric() {
				for _, l := range m.GetLabel() {
					labels[name] = append(labels[name], l.GetName())
				}
				if !slices.Contains(labels[name], "cluster") {
					t.Errorf("%s does not name its cluster", name)
				}
			}
		}
	}
	return labels
}

var (
	metricName = regexp.MustCompile(`\b(?:doyen|process|go)_[a-z_]+\b`)
	labelNames = regexp.MustCompile(`(?:by|on|without|ignoring) ?\(([^)]*)\)|\{\{ ?\$?(?:labels\.)?([a-z]+) ?\}\}|[{,] ?([a-z]+)=`)
)

// unknown lists the metrics and labels in an expression or legend that no agent has.
func unknown(text string, metrics map[string][]string) (bad []string) {
	has := []string{"instance", "job", "le"} // Prometheus adds these
	for _, name := range metricName.FindAllString(text, -1) {
		labels, ok := metrics[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && !ok {
				labels, ok = metrics[base]
			}
		}
		if !ok {
			bad = append(bad, name)
		}
		has = append(has, labels...)
	}
	for _, found := range labelNames.FindAllStringSubmatch(text, -1) {
		for _, label := range strings.FieldsFunc(found[1]+","+found[2]+","+found[3], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(has, label) {
				bad = append(bad, "label "+label)
			}
		}
	}
	return bad
}

type rule struct {
	Alert, Expr string
	Annotations map[string]string
}

func rules(t *testing.T, path string) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	read(t, path, func(text []byte) error { return yaml.Unmarshal(text, &file) })
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func read(t *testing.T, path string, decode func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = decode(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// query is an expression of a panel in the dashboard, with its legend.
type query struct{ Panel, Expr, Legend string }

func queries(t *testing.T) (all []query) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	read(t, "grafana/doyen.json", func(text []byte) error { return json.Unmarshal(text, &board) })
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			all = append(all, query{p.Title, q.Expr, q.LegendFormat})
		}
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("a panel %q asks for nothing", p.Title)
		}
	}
	return all
}

// An alert on a missing metric never fires. A panel on a missing metric stays empty.
func TestAlertsAndDashboardNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	metrics := measured(t)
	for _, r := range rules(t, "prometheus/doyen.rules.yml") {
		if bad := unknown(r.Expr, metrics); len(bad) > 0 {
			t.Errorf("%s: no agent has %v", r.Alert, bad)
		}
	}
	for _, q := range queries(t) {
		if bad := unknown(q.Expr+" "+q.Legend, metrics); len(bad) > 0 {
			t.Errorf("panel %q: no agent has %v", q.Panel, bad)
		}
		if strings.Count(q.Expr, `cluster="$cluster"`) != len(metricName.FindAllString(q.Expr, -1)) {
			t.Errorf("panel %q shows every cluster: %s", q.Panel, q.Expr)
		}
	}
	var manual []byte
	read(t, "../docs/monitoring.md", func(text []byte) error { manual = text; return nil })
	for name := range metrics {
		if strings.HasPrefix(name, "doyen_") && !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("docs/monitoring.md does not explain %s", name)
		}
	}
	for _, name := range regexp.MustCompile("`(doyen_[a-z_]+)").FindAllStringSubmatch(string(manual), -1) {
		if _, ok := metrics[name[1]]; !ok {
			t.Errorf("docs/monitoring.md explains %s, which no agent has", name[1])
		}
	}
}

// Each outage in the test file fires its alert, and each alert has an outage.
func TestEachAlertFiresAtItsOutage(t *testing.T) {
	t.Parallel()
	need(t, "promtool")
	for _, command := range [][]string{
		{"check", "config", "prometheus/prometheus.yml"}, {"test", "rules", "prometheus/doyen.test.yml"},
	} {
		if code, out := run(t, nil, "promtool", command...); code != 0 {
			t.Errorf("%v: %s", command, out)
		}
	}
	var played struct {
		Tests []struct {
			Cases []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, "prometheus/doyen.test.yml", func(text []byte) error { return yaml.Unmarshal(text, &played) })
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, p := range played.Tests {
		for _, c := range p.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Fires) > 0
			quiet[c.Alert] = quiet[c.Alert] || len(c.Fires) == 0
		}
	}
	for _, r := range rules(t, "prometheus/doyen.rules.yml") {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s: fires in a test: %t; stays quiet in one: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s says nothing", r.Alert)
		}
	}
}

func TestTheQueriesOfTheDashboardAreUnderstood(t *testing.T) {
	t.Parallel()
	need(t, "promtool")
	type recorded struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var all []recorded
	for i, q := range queries(t) {
		expr := strings.NewReplacer("$cluster", "oslo", "$__rate_interval", "1m").Replace(q.Expr)
		all = append(all, recorded{fmt.Sprintf("query:%d", i), expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, nil, "promtool", "check", "rules", path); code != 0 {
		t.Error(out)
	}
}
