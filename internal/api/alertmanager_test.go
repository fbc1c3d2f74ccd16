package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/need"
)

// lostPort is a port of red that is not there: an alarm for red and the provider.
const lostPort = "0x00000000000f0001"

func newAlerted(t *testing.T) *stand {
	s := newStand(t)
	s.tenants()
	s.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": "red", "ports": []js{{"guid": lostPort}, {"guid": "0x00000000000f0002"}}}})
	return s
}

// am makes a call of Alertmanager's API, and decodes its answer.
func (s *stand) am(status int, as, method, path string, body, out any) {
	s.Helper()
	w := s.do(call{as: as, method: method, path: "/" + AlertmanagerPrefix + path, body: body})
	if w.Code != status {
		s.Fatalf("%s %s as %q: %d %s, want %d", method, path, as, w.Code, w.Body, status)
	}
	if out != nil && json.Unmarshal(w.Body.Bytes(), out) != nil {
		s.Fatalf("%s %s: %s", method, path, w.Body)
	}
}

func ends() time.Time { return time.Now().Add(time.Hour).UTC() }

func silenceOf(guid string) js {
	return js{"matchers": []js{{"name": "guid", "value": guid, "isRegex": false}}, "startsAt": time.Now(), "endsAt": ends(), "createdBy": "ann", "comment": "it is on its way"}
}

// TestWhoMayAlertmanager: each call is for whom the same of ibwarden's own API is for.
func TestWhoMayAlertmanager(t *testing.T) {
	s := newAlerted(t)
	for _, row := range []struct {
		method, path string
		body         any
		want         string // as in matrix
	}{
		{"GET", "/status", nil, "401 401 200 200 200 200 200 200"},
		{"GET", "/receivers", nil, "401 401 200 200 200 200 200 200"},
		{"GET", "/alerts", nil, "401 401 200 200 200 200 200 200"},
		{"GET", "/alerts/groups", nil, "401 401 200 200 200 200 200 200"},
		{"GET", "/silences", nil, "401 401 200 200 200 200 200 200"},
		{"GET", "/silence/" + silenceID("0000000000000000"), nil, "401 401 404 404 404 404 404 404"},
		{"DELETE", "/silence/" + silenceID("0000000000000000"), nil, "401 401 404 404 404 404 404 404"},
		{"POST", "/silences", silenceOf(lostPort), "401 401 403 200 400 200 200 200"}, // blue does not see the alarm
		{"POST", "/alerts", []js{}, "401 401 405 405 405 405 405 405"},
		{"GET", "/../../api/v2/alerts", nil, "404 404 404 404 404 404 404 404"},
	} {
		for i, as := range callers {
			w := s.do(call{as: as, method: row.method, path: "/" + AlertmanagerPrefix + row.path, body: row.body})
			if want := strings.Fields(row.want)[i]; fmt.Sprint(w.Code) != want {
				t.Errorf("%s %s as %q: %d %.300s, want %s", row.method, row.path, as, w.Code, w.Body, want)
			}
		}
	}
	bound := s.want(201, call{as: "red", method: "POST", path: "/tokens", body: js{"tenant": "red", "keys": js{"first": "0x0100", "last": "0x0101"}}})["secret"].(string)
	s.tokens["bound"] = bound
	s.am(403, "bound", "GET", "/alerts", nil, nil)
}

// TestSilences: a silence acknowledges one alarm that the caller sees, and nothing of others.
func TestSilences(t *testing.T) {
	s := newAlerted(t)
	var list []gettableAlert
	s.am(200, "red", "GET", `/alerts?filter=guid%3D%22`+lostPort+`%22`, nil, &list)
	if len(list) != 1 {
		t.Fatalf("%d alarms of the port", len(list))
	}
	x := list[0]
	want := map[string]string{"alertname": "IbwardenPort", "severity": "medium", "guid": lostPort, "tenant": "red", "alarm": x.Fingerprint, "subnet_prefix": "0xfe80000000000000"}
	if fmt.Sprint(x.Labels) != fmt.Sprint(want) || x.Status.State != "active" || x.StartsAt.After(time.Now()) || !x.EndsAt.After(time.Now()) || !strings.Contains(x.Annotations["summary"], "not found") {
		t.Errorf("the alarm is %+v", x)
	}
	started := x.StartsAt
	for name, body := range map[string]any{
		"none match":      silenceOf("0x1"),
		"several match":   js{"matchers": []js{{"name": "alertname", "value": "IbwardenPort"}}, "endsAt": ends()},
		"all match":       js{"matchers": []js{{"name": "alertname", "value": ".*", "isRegex": true}}, "endsAt": ends()},
		"no matchers":     js{"matchers": []js{}, "endsAt": ends()},
		"a null":          `{"matchers":[null],"endsAt":"2100-01-01T00:00:00Z"}`,
		"no end":          js{"matchers": []js{{"name": "guid", "value": lostPort}}},
		"an early end":    js{"matchers": []js{{"name": "guid", "value": lostPort}}, "endsAt": time.Now().Add(-time.Hour)},
		"a late end":      js{"matchers": []js{{"name": "guid", "value": lostPort}}, "endsAt": time.Now().Add(91 * 24 * time.Hour)},
		"a late start":    js{"matchers": []js{{"name": "guid", "value": lostPort}}, "startsAt": time.Now().Add(time.Hour), "endsAt": time.Now().Add(2 * time.Hour)},
		"a long comment":  js{"matchers": []js{{"name": "guid", "value": lostPort}}, "endsAt": ends(), "comment": strings.Repeat("x", resource.WhyMax+1)},
		"no JSON":         "{",
		"twice a key":     `{"endsAt":"2100-01-01T00:00:00Z","endsAt":"2100-01-01T00:00:00Z"}`,
		"another's alarm": js{"matchers": []js{{"name": "guid", "value": s.hosts[5]}}, "endsAt": ends()},
	} {
		var text string
		if s.am(400, "red", "POST", "/silences", body, &text); text == "" {
			t.Errorf("%s: no text", name)
		}
	}
	other := silenceOf(lostPort)
	other["id"] = silenceID("0123456789abcdef")
	s.am(404, "red", "POST", "/silences", other, nil)
	other["id"] = silenceID(x.Fingerprint)
	s.am(404, "red", "POST", "/silences", other, nil) // there is none yet
	var made map[string]string
	s.am(200, "red", "POST", "/silences", silenceOf(lostPort), &made)
	id := made["silenceID"]
	if id != silenceID(x.Fingerprint) {
		t.Errorf("the silence is %q", id)
	}
	other["id"] = silenceID("0123456789abcdef")
	s.am(404, "red", "POST", "/silences", other, nil)
	s.am(200, "red", "GET", "/alerts?silenced=false", nil, &list)
	if slices.ContainsFunc(list, func(y gettableAlert) bool { return y.Fingerprint == x.Fingerprint }) || len(list) == 0 {
		t.Errorf("without those with a silence there are %+v", list)
	}
	s.am(200, "reader", "GET", "/alerts?active=false", nil, &list)
	if len(list) != 1 || list[0].Status.State != "suppressed" || list[0].Status.SilencedBy[0] != id || !list[0].StartsAt.Equal(started) || !strings.Contains(list[0].Annotations["acknowledged"], "ann: it is on its way") {
		t.Errorf("with a silence there are %+v", list)
	}
	var silences []gettableSilence
	for as, n := range map[string]int{"red": 1, "reader": 1, "blue": 0, "provider": 0} {
		s.am(200, as, "GET", "/silences", nil, &silences)
		if len(silences) != n {
			t.Errorf("%s sees %d silences: %+v", as, len(silences), silences)
		}
	}
	s.am(404, "blue", "GET", "/silence/"+id, nil, nil)
	s.am(404, "blue", "DELETE", "/silence/"+id, nil, nil)
	s.am(403, "reader", "DELETE", "/silence/"+id, nil, nil)
	var one gettableSilence
	s.am(200, "red", "GET", "/silence/"+id, nil, &one)
	if one.Status["state"] != "active" || one.Comment != "ann: it is on its way" || len(one.Matchers) != len(want) {
		t.Errorf("the silence is %+v", one)
	}
	one.Comment, one.EndsAt = "ann: later", one.EndsAt.Add(time.Hour)
	s.am(200, "red", "POST", "/silences", one.postableSilence, nil)
	if s.am(200, "red", "GET", "/silence/"+id, nil, &one); one.Comment != "ann: later" {
		t.Errorf("the silence is %+v", one)
	}
	// It outlasts its alarm, and can be ended then.
	s.want(200, call{method: "POST", path: "/ports/release", body: js{"ports": []string{lostPort}}})
	s.am(200, "red", "GET", "/silence/"+id, nil, &one)
	if len(one.Matchers) != 1 || one.Matchers[0].Value != x.Fingerprint {
		t.Errorf("of an alarm that is over the silence is %+v", one)
	}
	s.am(200, "red", "DELETE", "/silence/"+id, nil, nil)
	s.am(404, "red", "DELETE", "/silence/"+id, nil, nil)
	var groups []alertGroup
	s.am(200, "red", "GET", "/alerts/groups", nil, &groups)
	if len(groups) == 0 || groups[0].Labels["alertname"] != groups[0].Alerts[0].Labels["alertname"] {
		t.Errorf("groups: %+v", groups)
	}
}

// TestMatchers: as Alertmanager's, and none takes long.
func TestMatchers(t *testing.T) {
	labels := map[string]string{"alertname": "IbwardenPort", "severity": "high", "x": "a\"b\\\nc"}
	for text, want := range map[string]bool{
		`alertname=IbwardenPort`: true, `alertname="IbwardenPort"`: true, ` alertname = "IbwardenPort" `: true, `alertname="Ibwarden"`: false,
		`alertname!="IbwardenPort"`: false, `alertname!=x`: true, `severity=~"high|critical"`: true, `severity=~"hig"`: false, `severity!~"low|.*h"`: false,
		`none=""`: true, `none!=""`: false, `none=~".*"`: true, `none=~".+"`: false, `x="a\"b\\\nc"`: true, `x=~".*"`: true, `severity=~"low|x"`: false,
	} {
		m, err := parsedMatchers([]string{text})
		if err != nil || m.match(labels) != want {
			t.Errorf("%s: %v, want %t", text, err, want)
		}
	}
	for name, list := range map[string][]string{
		"no operator": {"alertname"}, "no name": {"=x"}, "a bad name": {"a-b=x"}, "a backreference": {`a=~"(a)\\1"`}, "a lookahead": {`a=~"(?=a)"`}, "a parenthesis": {`a=~"a)|(b"`},
		"many": slices.Repeat([]string{"a=b"}, matchersMost+1), "long": {"a=" + strings.Repeat("x", matcherMost+1)}, "very long": {"a=" + strings.Repeat("x", 1<<16)},
		"a large program":        {`a=~"` + strings.Repeat("a", 100) + `{1000}"`, `a=~"((a?){30}){30}"`},
		"a large program of one": {`a=~"(x{30}){30}` + strings.Repeat("(.?){1000}", 10) + `"`},
		"together":               slices.Repeat([]string{`a=~"a{100}"`}, 20),
		"deep":                   {`a=~"` + strings.Repeat("(", 250) + strings.Repeat(")", 250) + `{1001}"`},
	} {
		began := time.Now()
		if _, err := parsedMatchers(list); err == nil {
			t.Errorf("%s: taken", name)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	worst, err := parsedMatchers([]string{`a=~"` + "(?:x?){480}" + `"`})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 100 {
		worst.match(map[string]string{"a": strings.Repeat("x", 100)})
	}
	t.Logf("the worst takes %v for a label of 100 bytes", time.Since(began)/100)
}

// TestAmtool: Alertmanager's own tool lists alarms, and makes, shows and expires a silence.
func TestAmtool(t *testing.T) {
	amtool := need.Program(t, "amtool")
	s := newAlerted(t)
	server := httptest.NewServer(s.handler)
	defer server.Close()
	dir := t.TempDir()
	run := func(as string, args ...string) (string, error) {
		config := filepath.Join(dir, as+".yml")
		if err := os.WriteFile(config, []byte("authorization: {credentials: "+s.tokens[as]+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(amtool, append([]string{"--alertmanager.url=" + server.URL + "/alertmanager", "--http.config.file=" + config}, args...)...).CombinedOutput()
		return string(out), err
	}
	must := func(as, want string, args ...string) string {
		t.Helper()
		out, err := run(as, args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("amtool %q as %s: %v, want %q in\n%s", args, as, err, want, out)
		}
		return out
	}
	must("red", "the port was not found", "alert", "query", "guid="+lostPort)
	if out := must("blue", "", "alert", "query", "guid="+lostPort); strings.Contains(out, "f0001") {
		t.Errorf("blue reads\n%s", out)
	}
	for want, args := range map[string][]string{
		"the matchers match 2 alarms: want one": {"alertname=IbwardenPort", "severity=medium"}, "the matchers match 0 alarms": {"alertname=x"},
	} {
		if out, err := run("red", append([]string{"silence", "add", "--author=ann", "--comment=x"}, args...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("amtool silence add %q: %v\n%s", args, err, out)
		}
	}
	if out, err := run("reader", "silence", "add", "--author=ann", "--comment=x", "guid="+lostPort); err == nil || !strings.Contains(out, "403") {
		t.Errorf("who may only read: %v\n%s", err, out)
	}
	id := strings.TrimSpace(lastLine(must("red", "-8", "silence", "add", "--author=ann", "--comment=it is on its way", "--duration=2h", "guid="+lostPort)))
	must("red", "it is on its way", "silence", "query")
	must("red", id, "silence", "query", "guid="+lostPort)
	must("red", "it is on its way", "alert", "query", "--silenced", "-o", "extended", "guid="+lostPort)
	if out := must("red", "f0002", "alert", "query"); strings.Contains(out, "f0001") {
		t.Errorf("an alarm with a silence is shown:\n%s", out)
	}
	must("red", id, "silence", "update", "--duration=3h", "--comment=later", id)
	must("red", "later", "silence", "query")
	must("red", "", "silence", "expire", id)
	if out := must("red", "", "silence", "query"); strings.Contains(out, id) {
		t.Errorf("it did not expire:\n%s", out)
	}
	must("red", "receiver: ibwarden", "config", "show")
	must("red", "", "cluster", "show")
}

// alertmanagerRows are requests of the matrix of sights.
var alertmanagerRows = map[string][]sightRow{
	"GET alerts":    {{path: "//alertmanager/api/v2/alerts"}, {path: "//alertmanager/api/v2/alerts?filter=guid%3D{GUID}"}, {path: "//alertmanager/api/v2/alerts?filter=tenant%3D{TENANT}"}},
	"GET groups":    {{path: "//alertmanager/api/v2/alerts/groups"}},
	"GET silences":  {{path: "//alertmanager/api/v2/silences"}, {path: "//alertmanager/api/v2/silences?filter=guid%3D{GUID}"}},
	"GET status":    {{path: "//alertmanager/api/v2/status"}},
	"GET silence":   {{path: "//alertmanager/api/v2/silence/01234567-89ab-8cde-8f00-000000000000"}},
	"POST silences": {{path: "//alertmanager/api/v2/silences", body: `{"matchers":[{"name":"guid","value":"{GUID}"}],"endsAt":"2026-01-01T00:00:00Z"}`}},
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
