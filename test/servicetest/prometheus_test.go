package servicetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/test/need"
)

// promtool has Prometheus' own tool look at what a scrape returned.
func promtool(t *testing.T, text string) {
	t.Helper()
	c := exec.Command(need.Program(t, "promtool"), "check", "metrics")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestPromtool: promtool finds nothing wrong with what a manager serves.
func TestPromtool(t *testing.T) {
	s := newSite(t, &policy.Policy{Default: policy.Limited}, nil)
	s.setCounters()
	s.settle()
	promtool(t, ours(s.scrape()))
}

// ours leaves out what client_golang says of Go and the process.
func ours(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "))
		if !strings.HasPrefix(f[0], "go_") && !strings.HasPrefix(f[0], "process_") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// patience is how long programs may take to startPrometheus: this is a busy machine.
const patience = 60 * time.Second

// freeAddress is a loopback address where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startPrometheus starts a program that ends with the test.
func startPrometheus(t *testing.T, dir string, env []string, name string, args ...string) *bytes.Buffer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.CommandContext(ctx, name, args...)
	out := new(bytes.Buffer)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, append(os.Environ(), env...), out, out
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), out)
		}
	})
	return out
}

func get(address, path string) (int, string) {
	r, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// until waits for something.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	need.Eventually(t, patience, what, done)
}

// query asks Prometheus; the value of each series by its labels.
func query(t *testing.T, address, q string) map[string]string {
	t.Helper()
	code, body := get(address, "/api/v1/query?query="+url.QueryEscape(q))
	var r struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if code != 200 || json.Unmarshal([]byte(body), &r) != nil {
		return nil
	}
	out := make(map[string]string)
	for _, x := range r.Data.Result {
		out[x.Metric["guid"]+"/"+x.Metric["port"]+x.Metric["verdict"]] = fmt.Sprint(x.Value[1])
	}
	return out
}

// TestPrometheus: a real Prometheus scrapes a running `ibwarden run`; what it answers
// to a query is what the simulated devices count.
func TestPrometheus(t *testing.T) {
	need.Long(t, "waits for what Prometheus scrapes")
	prometheus := need.Program(t, "prometheus")
	dir := t.TempDir()
	binary, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	ours, theirs := freeAddress(t), freeAddress(t)
	systemd := filepath.Join(dir, "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: systemd, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	startPrometheus(t, dir, []string{"IBWARDEN_DATA=" + data, "IBWARDEN_FABRIC=sim", "NOTIFY_SOCKET=" + systemd, "WATCHDOG_USEC=400000"}, binary,
		"run", "--policy", "none", "--metrics", ours, "--counters-period", "1s", "--counters-hca")
	until(t, "the manager is ready", func() bool { code, _ := get(ours, "/readyz"); return code == 200 })
	if code, body := get(ours, "/healthz"); code != 200 {
		t.Errorf("healthz: %d %s", code, body)
	}
	lines := make(map[string]int)
	until(t, "systemd is told", func() bool {
		b := make([]byte, 4096)
		_ = told.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := told.Read(b); err == nil {
			for _, line := range strings.Split(string(b[:n]), "\n") {
				lines[line]++
			}
		}
		return lines["READY=1"] == 1 && lines["WATCHDOG=1"] > 5 && lines["STATUS=master, watch, verdict: isolated"] > 0
	})
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - {job_name: ibwarden, static_configs: [{targets: ["`+ours+`"]}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	startPrometheus(t, dir, nil, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address="+theirs, "--log.level=error")
	until(t, "Prometheus has a verdict", func() bool {
		return query(t, theirs, `ibwarden_verdict == 1`)["/isolated"] != ""
	})
	until(t, "Prometheus has counters", func() bool {
		return len(query(t, theirs, `infiniband_switch_port_receive_packets_total`)) == 48
	})
	if up := query(t, theirs, `up{job="ibwarden"}`); up["/"] != "1" {
		t.Errorf("up: %v", up)
	}
	// Every link has two ends: what one sends the other receives. They are not read at
	// once, so that the sums are compared by a packet that was read at both.
	sent := query(t, theirs, `infiniband_hca_port_transmit_packets_total`)
	if len(sent) != 16 || sent["0x0000000000100001/1"] == "0" {
		t.Errorf("packets sent by hosts: %v", sent)
	}
	if errors := query(t, theirs, `infiniband_switch_port_symbol_error_total != 0`); len(errors) != 0 {
		t.Errorf("errors on a fabric without any: %v", errors)
	}
	// The dashboards of the exporter join counters with uplinks.
	joined := query(t, theirs, `infiniband_switch_port_receive_packets_total * on(guid,port) group_left(switch, uplink) infiniband_switch_uplink_info`)
	if len(joined) != 48 {
		t.Errorf("%d ports after the join", len(joined))
	}
}
