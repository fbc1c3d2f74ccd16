package servicetest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestAlertmanager: a running `ibwarden run` sends an alarm to a real Alertmanager beside one that is dead, ends it there when it
// is gone, and amtool acknowledges it on the API.
func TestAlertmanager(t *testing.T) {
	need.Long(t, "waits for looks at the alarms; internal/app/telemetry sends to a real Alertmanager, and internal/api answers amtool")
	alertmanager, amtool := need.Program(t, "prometheus-alertmanager"), need.Program(t, "amtool")
	binary, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data, config, token := filepath.Join(dir, "data"), filepath.Join(dir, "am.yml"), filepath.Join(dir, "token.yml")
	theirs, ours, metrics := freeAddress(t), freeAddress(t), freeAddress(t)
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("route: {receiver: x}\nreceivers: [{name: x}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	startPrometheus(t, dir, nil, alertmanager, "--config.file="+config, "--storage.path="+filepath.Join(dir, "am"), "--web.listen-address="+theirs, "--cluster.listen-address=", "--log.level=error")
	startPrometheus(t, dir, []string{"IBWARDEN_DATA=" + data, "IBWARDEN_FABRIC=sim"}, binary,
		"run", "--policy", "none", "--listen", ours, "--metrics", metrics, "--alertmanager", "http://127.0.0.1:1,http://"+theirs)
	until(t, "the manager is ready", func() bool { code, _ := get(metrics, "/readyz"); return code == 200 })
	call := func(method, path, body string) (out map[string]any) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(data, "ibwarden.sock"))
		}}}
		defer client.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://ibwarden/api/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if err := json.NewDecoder(a.Body).Decode(&out); err != nil || a.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %v %v", method, path, a.StatusCode, out, err)
		}
		return out
	}
	ask := func(at string, args ...string) string {
		url, config := "--alertmanager.url=http://"+theirs, []string{}
		if at == ours {
			url, config = "--alertmanager.url=http://"+ours+"/alertmanager", []string{"--http.config.file=" + token}
		}
		out, err := exec.Command(amtool, append(append([]string{url}, config...), args...)...).CombinedOutput()
		if err != nil {
			return ""
		}
		return string(out) + "."
	}
	const port = "0x00000000000f0001"
	call("PUT", "/tenants/red", `{}`)
	call("POST", "/ports/assign", `{"tenant":"red","ports":[{"guid":"`+port+`"}]}`)
	secret := call("POST", "/tokens", `{"tenant":"red"}`)["secret"].(string)
	providers := call("POST", "/tokens", `{"tenant":"provider"}`)["secret"].(string)
	write := func(secret string) {
		if err := os.WriteFile(token, []byte("authorization: {credentials: "+secret+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "Alertmanager has the alarm", func() bool {
		return strings.Contains(ask(theirs, "alert", "query", "-o", "json", "guid="+port, "tenant=red", "severity=medium"), "the port was not found")
	})
	var sent []struct {
		StartsAt, EndsAt time.Time
		Labels           map[string]string
	}
	_, text := get(theirs, "/api/v2/alerts")
	if err := json.Unmarshal([]byte(text), &sent); err != nil || len(sent) == 0 || time.Until(sent[0].EndsAt) > 5*time.Minute || !sent[0].EndsAt.After(time.Now()) {
		t.Errorf("it outlasts a manager that dies: %v %s", err, text)
	}
	write(secret)
	id := ask(ours, "silence", "add", "--author=ann", "--comment=it is on its way", "guid="+port)
	if !strings.Contains(ask(ours, "silence", "query"), "ann: it is on its way") || strings.Contains(ask(ours, "alert", "query"), port) {
		t.Errorf("red's silence: %s", id)
	}
	write(providers)
	if id := ask(ours, "silence", "add", "--author=bob", "--comment=known", "guid="+port); !strings.Contains(id, "-8") {
		t.Errorf("the provider's silence: %s", id)
	}
	until(t, "Alertmanager has who knows of it", func() bool {
		return strings.Contains(ask(theirs, "alert", "query", "-o", "json", "guid="+port), "bob: known")
	})
	call("POST", "/ports/release", `{"ports":["`+port+`"]}`)
	until(t, "the alarm is over", func() bool {
		out := ask(theirs, "alert", "query")
		return out != "" && !strings.Contains(out, port)
	})
	if _, text := get(metrics, "/metrics"); !strings.Contains(text, `ibwarden_alertmanager_alerts_total{alertmanager="`+theirs+`",result="failed"} 0`) || strings.Contains(text, `{alertmanager="127.0.0.1:1",result="failed"} 0`) {
		t.Errorf("the metrics do not say which Alertmanager is dead:\n%s", text)
	}
}
