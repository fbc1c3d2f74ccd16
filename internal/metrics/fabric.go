package metrics

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// LabelMax is how many bytes of a text from elsewhere a label has; a NodeDescription
// has 64.
const LabelMax = 128

// label makes text from elsewhere fit for a label.
func label(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.TrimSpace(s)
	if len(s) <= LabelMax {
		return s
	}
	s = s[:LabelMax]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// CopyFabric enters a subnet and the readings of its counters into a state. readings may
// be nil; those of an agent follow each other, by port.
func CopyFabric(s *State, f *observed.Fabric, readings func(func(perfmgr.Reading) bool)) {
	if f == nil {
		return
	}
	c := copier{named: make(map[*observed.Port]*Identity, len(f.Nodes))}
	if readings != nil {
		c.read(readings)
	}
	claims := make(map[string]int, len(f.Nodes)) // how many devices claim a GUID
	devices := make([]Device, 0, len(f.Nodes))
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if n.Switch != nil && i > 0 || n.Switch == nil && (i == 0 || !p.Reached || p.GUID == 0) {
				continue
			}
			d := c.device(p)
			claims[d.GUID]++
			if n.Contested {
				claims[d.GUID]++
			}
			devices = append(devices, d)
		}
	}
	for _, d := range devices {
		if claims[d.GUID] > 1 {
			s.Contested += len(d.Ports)
			continue
		}
		s.Devices = append(s.Devices, d)
	}
}

// copier copies a subnet. The manager waits for it: it makes little garbage.
type copier struct {
	named    map[*observed.Port]*Identity // by the end port
	readings map[observed.Place][]perfmgr.Reading
	counters []perfmgr.Copy // room for all of them
}

// read takes the readings in, by who was asked.
func (c *copier) read(readings func(func(perfmgr.Reading) bool)) {
	var list []perfmgr.Reading
	answered := 0
	for r := range readings {
		list = append(list, r)
		if r.Fault == perfmgr.Answered {
			answered++
		}
	}
	c.counters = make([]perfmgr.Copy, 0, answered)
	c.readings = make(map[observed.Place][]perfmgr.Reading)
	for first := 0; first < len(list); {
		next := first + 1
		for next < len(list) && list[next].Agent == list[first].Agent {
			next++
		}
		c.readings[list[first].Agent] = list[first:next]
		first = next
	}
}

// identity names the device of an end port.
func (c *copier) identity(p *observed.Port) *Identity {
	if d := c.named[p]; d != nil {
		return d
	}
	d := &Identity{GUID: p.GUID.String(), Kind: kindOf(p.Node), Name: label(p.Node.Name())}
	if p.Node.Switch != nil {
		d.GUID = p.Node.GUID().String()
	}
	if p.InfoRead {
		d.LID = strconv.Itoa(int(p.Info.LID))
	}
	c.named[p] = d
	return d
}

func kindOf(n *observed.Node) string {
	switch n.Type() {
	case ib.NodeSwitch:
		return "SW"
	case ib.NodeRouter:
		return "RT"
	}
	return "CA"
}

// device copies the switch of a port 0, or another end port.
func (c *copier) device(end *observed.Port) Device {
	d := Device{Identity: c.identity(end)}
	readings := c.readings[end.Place()]
	if end.Node.Switch == nil {
		c.add(&d, end, readings)
		return d
	}
	d.Ports = make([]Port, 0, len(end.Node.Ports))
	for i := range end.Node.Ports {
		p := &end.Node.Ports[i]
		for len(readings) > 0 && readings[0].Place.Port < p.Num {
			readings = readings[1:]
		}
		c.add(&d, p, readings)
	}
	return d
}

// add adds a port, whose reading is the first of these if it has any.
func (c *copier) add(d *Device, p *observed.Port, readings []perfmgr.Reading) {
	out := Port{Place: p.Place(), Num: strconv.Itoa(int(p.Num))}
	if p.InfoRead {
		i := &p.Info
		out.State, out.Physical = uint8(i.PortState), uint8(i.PortPhysicalState)
		out.Violations = Violations{true, uint64(i.MKeyViolations), uint64(i.PKeyViolations), uint64(i.QKeyViolations)}
		if p.IsUp() {
			out.Rate, out.RawRate = ratesOf(i)
		}
	}
	if q := p.Peer; q != nil {
		out.Uplink, out.UplinkPort = c.identity(q.Agent()), strconv.Itoa(int(q.Num))
	}
	if len(readings) > 0 && readings[0].Place == p.Place() {
		r := &readings[0]
		out.Read, out.Fault = true, r.Fault
		if r.Fault == perfmgr.Answered {
			c.counters = append(c.counters, *r.Copy())
			out.Counters = &c.counters[len(c.counters)-1]
		}
		d.Refused = d.Refused || r.Fault == perfmgr.Refused || r.Fault == perfmgr.Malformed
		d.Silent = d.Silent || r.Fault == perfmgr.NoAnswer
	}
	d.Ports = append(d.Ports, out)
}

// bytesPerGigabit is 10^9 bits in bytes.
const bytesPerGigabit = 1e9 / 8

// ratesOf are the data rate and the signalling rate of a link in bytes per second, as
// infiniband_exporter counts them; 0 for what is not known. It rounds the data rate of FDR, and
// from HDR on its signalling rate is the data rate.
func ratesOf(i *smp.PortInfo) (rate, raw float64) {
	speed, lanes := i.Speed(), float64(i.LinkWidthActive.Lanes())
	rate, raw = float64(speed.Data())/1000, speed.Signal()
	switch {
	case speed == smp.SpeedFDR:
		rate = 13.64
	case speed >= smp.SpeedHDR:
		raw = rate
	}
	return rate * lanes * bytesPerGigabit, raw * lanes * bytesPerGigabit
}
