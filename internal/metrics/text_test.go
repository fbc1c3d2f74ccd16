package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// readText has Prometheus' own parser read what WriteFabric writes: the value of every
// sample by metric and labels. No sample may be there twice.
func readText(t *testing.T, s *State) map[string]map[string]float64 {
	t.Helper()
	var text bytes.Buffer
	if err := WriteFabric(&text, s); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(text.String()) {
		series, _, _ := strings.Cut(line, "} ")
		if seen[series] {
			t.Errorf("%s is there twice", series)
		}
		seen[series] = true
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]map[string]float64)
	for name, f := range families {
		m := describedAs(name)
		if m == nil || m.Help != f.GetHelp() || !strings.EqualFold(m.Type, f.GetType().String()) {
			t.Errorf("%s is told as %s, %q; the table has %+v", name, f.GetType(), f.GetHelp(), m)
			continue
		}
		out[name] = make(map[string]float64)
		for _, x := range f.Metric {
			var labels []string
			for i, l := range x.Label {
				if i >= len(m.Labels) || l.GetName() != m.Labels[i] {
					t.Errorf("%s has label %s: want %v", name, l.GetName(), m.Labels)
				}
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			out[name][strings.Join(labels, " ")] = x.GetCounter().GetValue() + x.GetGauge().GetValue()
		}
	}
	return out
}

func describedAs(name string) *Metric {
	for _, m := range All() {
		if m.Name == name {
			return &m
		}
	}
	return nil
}

// hostile is a state with one switch and one host, whose names are meant to break the
// format.
func hostile() *State {
	sw := &Identity{GUID: "0x0000000000000020", Kind: "SW", Name: `a"} 1\n\`, LID: "7"}
	host := &Identity{GUID: "0x0000000000000011", Kind: "CA", Name: "ü\\", LID: "8"}
	port := func(num string, to *Identity) Port {
		return Port{
			Num: num, State: 4, Physical: 5, Violations: Violations{Known: true, MKey: 1, PKey: 2, QKey: 65535},
			Rate: 13.64 * bytesPerGigabit, RawRate: 14.0625 * bytesPerGigabit, Uplink: to, UplinkPort: "3",
			Read: true, Fault: perfmgr.Answered, Counters: new(perfmgr.Copy),
		}
	}
	return &State{
		Made: time.Unix(1000, 0), Reading: true,
		Devices: []Device{
			{Identity: sw, Ports: []Port{{Num: "0"}, port("1", host), port("2", sw)}, Silent: true},
			{Identity: host, Ports: []Port{port("1", sw)}, Refused: true},
		},
	}
}

// TestText: Prometheus' parser reads what is written as it was meant, names of devices
// that hold quotes and backslashes included; what infiniband_exporter does not export
// unless it is told to is not there.
func TestText(t *testing.T) {
	s := hostile()
	got := readText(t, s)
	for _, want := range []struct {
		name, labels string
		v            float64
	}{
		{"infiniband_switch_info", `guid="0x0000000000000020" switch="a\"} 1\\n\\" lid="7"`, 1},
		{"infiniband_switch_uplink_info", `guid="0x0000000000000020" port="1" switch="a\"} 1\\n\\" uplink="ü\\" uplink_guid="0x0000000000000011" uplink_type="CA" uplink_port="3" uplink_lid="8"`, 1},
		{"infiniband_switch_port_rate_bytes_per_second", `guid="0x0000000000000020" port="2"`, 13.64 * bytesPerGigabit},
		{"infiniband_switch_port_raw_rate_bytes_per_second", `guid="0x0000000000000020" port="2"`, 1757812500},
		{"infiniband_switch_collect_timeout", `guid="0x0000000000000020" collector="switch"`, 1},
		{"infiniband_switch_collect_error", `guid="0x0000000000000020" collector="switch"`, 0},
		{"ibwarden_port_qkey_violations_total", `guid="0x0000000000000011" port="1"`, 65535},
		{"ibwarden_port_pkey_violations_total", `guid="0x0000000000000020" port="1"`, 2},
		{"ibwarden_port_state", `guid="0x0000000000000020" port="1"`, 4},
	} {
		if v, some := got[want.name][want.labels]; !some || v != want.v {
			t.Errorf("%s{%s} is %v, there: %v; want %v of %v", want.name, want.labels, v, some, want.v, got[want.name])
		}
	}
	if n := len(got["ibwarden_port_state"]); n != 3 {
		t.Errorf("%d states of 3 ports whose state is known", n)
	}
	hca := func(got map[string]map[string]float64) (n int) {
		for name := range got {
			if strings.HasPrefix(name, "infiniband_hca_") {
				n++
			}
		}
		return n
	}
	if n := hca(got); n != 0 {
		t.Errorf("%d metrics of hosts that nobody asked for", n)
	}
	s.Hosts = true
	got = readText(t, s)
	if n := hca(got); n != 6 {
		t.Errorf("%d metrics of hosts", n)
	}
	if v := got["infiniband_hca_rate_bytes_per_second"][`guid="0x0000000000000011"`]; v != 13.64*bytesPerGigabit {
		t.Errorf("rate of a host: %v", v)
	}
}

// broken is a client that goes away.
type broken struct{ n int }

var errGone = errors.New("gone")

func (b *broken) Write(p []byte) (int, error) {
	b.n++
	return 0, errGone
}

// TestTextEnds: a client that is gone is not written to for the rest of the fabric.
func TestTextEnds(t *testing.T) {
	s := hostile()
	for len(s.Devices) < 5000 {
		s.Devices = append(s.Devices, s.Devices[0])
	}
	var b broken
	if err := WriteFabric(&b, s); err != errGone || b.n != 1 {
		t.Errorf("%v after %d writes", err, b.n)
	}
}
