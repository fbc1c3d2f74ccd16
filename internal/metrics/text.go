package metrics

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// TextType is the media type of what WriteFabric writes.
const TextType = "text/plain; version=0.0.4; charset=utf-8"

// WriteFabric writes the samples of devices and ports in Prometheus' text format. A
// fabric of some thousand hosts has half a million of them; client_golang would make a
// value of each, sort them, and take seconds.
func WriteFabric(w io.Writer, s *State) error {
	if s == nil {
		return nil
	}
	t := text{to: w, bytes: make([]byte, 0, textChunk+textRoom), devices: s.Devices}
	t.label()
	t.ours()
	t.family(switchFamily, s.Reading)
	if s.Hosts {
		t.family(hcaFamily, s.Reading)
	}
	t.flush()
	return t.err
}

const (
	// textChunk is how many bytes are written at once, and textRoom what one sample may
	// come to.
	textChunk = 64 << 10
	textRoom  = 4 << 10
)

// text writes samples.
type text struct {
	to      io.Writer
	err     error
	bytes   []byte
	metric  *Metric // the one that samples were written of last
	devices []Device
	// labels are the labels guid and port of each port of each device, as they are
	// written.
	labels [][]string
}

// escape is how the format wants the value of a label.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// label prepares the labels that most samples have.
func (t *text) label() {
	t.labels = make([][]string, len(t.devices))
	for i := range t.devices {
		d := &t.devices[i]
		t.labels[i] = make([]string, len(d.Ports))
		for j := range d.Ports {
			t.labels[i][j] = guidLabel(d) + `,port="` + d.Ports[j].Num + `"`
		}
	}
}

func guidLabel(d *Device) string { return `guid="` + d.GUID + `"` }

func (t *text) flush() {
	if t.err == nil {
		_, t.err = t.to.Write(t.bytes)
	}
	t.bytes = t.bytes[:0]
}

// begin begins a sample; with adds a label, and end or exactly the value.
func (t *text) begin(m *Metric, labels string) {
	if t.metric != m {
		t.metric = m
		t.bytes = append(t.bytes, "# HELP "+m.Name+" "+m.Help+"\n# TYPE "+m.Name+" "+m.Type+"\n"...)
	}
	t.bytes = append(t.bytes, m.Name...)
	t.bytes = append(t.bytes, '{')
	t.bytes = append(t.bytes, labels...)
}

func (t *text) with(label, value string) {
	t.bytes = append(t.bytes, ',')
	t.bytes = append(t.bytes, label...)
	t.bytes = append(t.bytes, '=', '"')
	t.bytes = append(t.bytes, escape.Replace(value)...)
	t.bytes = append(t.bytes, '"')
}

func (t *text) end(v float64) {
	const most = 1 << 53 // up to here every whole number is a float64
	if v == math.Trunc(v) && v >= 0 && v <= most {
		t.exactly(uint64(v))
		return
	}
	t.bytes = append(t.bytes, '}', ' ')
	t.bytes = strconv.AppendFloat(t.bytes, v, 'g', -1, 64)
	t.bytes = append(t.bytes, '\n')
}

func (t *text) exactly(v uint64) {
	t.bytes = append(t.bytes, '}', ' ')
	t.bytes = strconv.AppendUint(t.bytes, v, 10)
	t.bytes = append(t.bytes, '\n')
}

// ports visits the ports of all devices, or of those of a family.
func (t *text) ports(of *family, f func(d *Device, p *Port, labels string)) {
	for i := range t.devices {
		d := &t.devices[i]
		if of != nil && d.Kind != of.device {
			continue
		}
		for j := range d.Ports {
			if f(d, &d.Ports[j], t.labels[i][j]); len(t.bytes) >= textChunk {
				t.flush()
			}
		}
	}
}

// each writes a metric of each port that has a value.
func (t *text) each(m *Metric, of func(p *Port) (v uint64, known bool)) {
	t.ports(nil, func(_ *Device, p *Port, labels string) {
		if v, known := of(p); known {
			t.begin(m, labels)
			t.exactly(v)
		}
	})
}

// ours are the metrics that infiniband_exporter does not have.
func (t *text) ours() {
	t.each(portState, func(p *Port) (uint64, bool) { return uint64(p.State), p.State != 0 })
	t.each(portPhys, func(p *Port) (uint64, bool) { return uint64(p.Physical), p.Physical != 0 })
	t.each(mKeyWrong, func(p *Port) (uint64, bool) { return p.Violations.MKey, p.Violations.Known })
	t.each(pKeyWrong, func(p *Port) (uint64, bool) { return p.Violations.PKey, p.Violations.Known })
	t.each(qKeyWrong, func(p *Port) (uint64, bool) { return p.Violations.QKey, p.Violations.Known })
	t.ports(nil, func(_ *Device, p *Port, labels string) {
		if p.Read && p.Fault != perfmgr.Answered {
			t.begin(portUnread, labels)
			t.with("reason", p.Fault.String())
			t.exactly(1)
		}
	})
	t.ports(nil, func(_ *Device, p *Port, labels string) {
		for c := perfmgr.Counter(0); p.Counters != nil && c < perfmgr.Counters; c++ {
			if p.Counters.Stuck(c) {
				t.begin(portStuck, labels)
				t.with("counter", c.String())
				t.exactly(1)
			}
		}
	})
}

// family writes what infiniband_exporter has.
func (t *text) family(f *family, reading bool) {
	for _, m := range []*Metric{f.info, f.failed, f.timedOut} {
		for i := range t.devices {
			d := &t.devices[i]
			if d.Kind != f.device || m != f.info && !reading {
				continue
			}
			t.begin(m, guidLabel(d))
			switch m {
			case f.info:
				t.with(f.collector, d.Name)
				t.with("lid", d.LID)
				t.exactly(1)
			case f.failed:
				t.with("collector", f.collector)
				t.end(one(d.Refused))
			case f.timedOut:
				t.with("collector", f.collector)
				t.end(one(d.Silent))
			}
			if len(t.bytes) >= textChunk {
				t.flush()
			}
		}
	}
	t.rate(f, f.rate, func(p *Port) float64 { return p.Rate })
	t.rate(f, f.rawRate, func(p *Port) float64 { return p.RawRate })
	t.ports(f, func(d *Device, p *Port, labels string) {
		if u := p.Uplink; u != nil {
			t.begin(f.uplink, labels)
			t.with(f.collector, d.Name)
			t.with("uplink", u.Name)
			t.with("uplink_guid", u.GUID)
			t.with("uplink_type", u.Kind)
			t.with("uplink_port", p.UplinkPort)
			t.with("uplink_lid", u.LID)
			t.exactly(1)
		}
	})
	for c, m := range f.counters {
		t.ports(f, func(_ *Device, p *Port, labels string) {
			if p.Counters == nil {
				return
			}
			if v, known := p.Counters.Value(perfmgr.Counter(c)); known {
				t.begin(m, labels)
				t.exactly(v)
			}
		})
	}
}

// rate writes a rate of each link; that of a CA port has no label port.
func (t *text) rate(f *family, m *Metric, of func(p *Port) float64) {
	t.ports(f, func(d *Device, p *Port, labels string) {
		if p.RawRate <= 0 || p.Uplink == nil {
			return
		}
		if f == hcaFamily {
			labels = guidLabel(d)
		}
		t.begin(m, labels)
		t.end(of(p))
	})
}
