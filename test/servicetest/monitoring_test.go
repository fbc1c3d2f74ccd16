package servicetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/test/need"
)

// monitoring has the alerts and the dashboard.
var monitoring = filepath.Join("..", "..", "examples", "monitoring")

// ruleFile is a file of alerts.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func readRules(t *testing.T) (f ruleFile) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(monitoring, "ibwarden.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// tool runs promtool and wants it to find nothing.
func tool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(need.Program(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// TestAlerts: promtool accepts the alerts, and its unit tests raise each of them, and do
// not where they should not.
func TestAlerts(t *testing.T) {
	tests, err := os.ReadFile(filepath.Join(monitoring, "ibwarden.test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			n++
			checkExpression(t, r.Alert, r.Expr)
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s has no severity or summary", r.Alert)
			}
			for _, name := range []string{r.Alert + " is raised", r.Alert + " is not raised"} {
				if !strings.Contains(string(tests), "name: "+name+"\n") {
					t.Errorf("no test %q", name)
				}
			}
		}
	}
	if n < 18 {
		t.Errorf("%d alerts", n)
	}
	tool(t, "check", "rules", filepath.Join(monitoring, "ibwarden.rules.yml"))
	tool(t, "test", "rules", filepath.Join(monitoring, "ibwarden.test.yml"))
}

var (
	metricName = regexp.MustCompile(`\b(?:ibwarden|infiniband)_[a-z0-9_]+\b`)
	matcher    = regexp.MustCompile(`((?:ibwarden|infiniband)_[a-z0-9_]+)\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
)

// checkExpression holds an expression against the metrics that there are.
func checkExpression(t *testing.T, where, expr string) {
	t.Helper()
	find := func(name string) *metrics.Metric {
		for _, m := range metrics.All() {
			if m.Name == name || m.Type == "histogram" && slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name) {
				return &m
			}
		}
		return nil
	}
	for _, name := range metricName.FindAllString(expr, -1) {
		if find(name) == nil {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if x := find(m[1]); x != nil && l[1] != "instance" && l[1] != "job" && !slices.Contains(x.Labels, l[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], l[1])
			}
		}
	}
}

// TestDashboard: the dashboard is JSON, every expression is one, and names metrics that
// there are.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(monitoring, "ibwarden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID    string
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	ids, n := make(map[int]bool), 0
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: %+v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		for _, x := range p.Targets {
			n++
			checkExpression(t, p.Title, x.Expr)
			rules += fmt.Sprintf("      - {record: \"dashboard:panel%d:%d\", expr: %q}\n", p.ID, n, x.Expr)
		}
	}
	if n < 30 {
		t.Errorf("%d expressions", n)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "check", "rules", file) // it parses them
	// A check that could not fail would be none.
	probe := &testing.T{}
	checkExpression(probe, "probe", `rate(ibwarden_no_such_total[5m]) + ibwarden_verdict{nolabel="x"}`)
	if !probe.Failed() {
		t.Error("a metric that does not exist is not noticed")
	}
}
