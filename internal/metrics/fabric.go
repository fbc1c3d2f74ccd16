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

// LabelMax is how many octets of a text from elsewhere a label has; a NodeDescription
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
// be nil.
func CopyFabric(s *State, f *observed.Fabric, readings func(func(perfmgr.Reading) bool)) {
	if f == nil {
		return
	}
	read := make(map[observed.Place]perfmgr.Reading)
	copies := make(map[observed.Place]*perfmgr.Copy)
	if readings != nil {
		for r := range readings {
			read[r.Place] = r
			if r.Fault == perfmgr.Answered {
				copies[r.Place] = r.Copy()
			}
		}
	}
	claims := make(map[string]int) // how many devices claim a GUID
	devices := make([]Device, 0, len(f.Nodes))
	for _, n := range f.Nodes {
		if n.Switch != nil {
			d := deviceOf(&n.Ports[0])
			for i := range n.Ports {
				d.add(&n.Ports[i], read, copies)
			}
			claims[d.GUID]++
			if n.Contested {
				claims[d.GUID]++
			}
			devices = append(devices, d)
			continue
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if i == 0 || !p.Reached || p.GUID == 0 {
				continue
			}
			d := deviceOf(p)
			d.add(p, read, copies)
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

// deviceOf names the device of an end port.
func deviceOf(p *observed.Port) Device {
	d := Device{GUID: p.GUID.String(), Kind: kindOf(p.Node), Name: label(p.Node.Name())}
	if p.Node.Switch != nil {
		d.GUID = p.Node.GUID().String()
	}
	if p.InfoRead {
		d.LID = strconv.Itoa(int(p.Info.LID))
	}
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

// add adds a port.
func (d *Device) add(p *observed.Port, read map[observed.Place]perfmgr.Reading, copies map[observed.Place]*perfmgr.Copy) {
	out := Port{Num: strconv.Itoa(int(p.Num))}
	if p.InfoRead {
		i := &p.Info
		out.State, out.Physical = uint8(i.PortState), uint8(i.PortPhysicalState)
		out.Violations = Violations{true, i.MKeyViolations, i.PKeyViolations, i.QKeyViolations}
		if p.IsUp() {
			out.Rate, out.RawRate = ratesOf(i)
		}
	}
	if q := p.Peer; q != nil {
		out.Uplink = &Uplink{Name: label(q.Node.Name()), GUID: q.GUID.String(), Kind: kindOf(q.Node), Port: strconv.Itoa(int(q.Num))}
		if q.Node.Switch != nil {
			out.Uplink.GUID = q.Node.GUID().String()
		}
		if a := q.Agent(); a.InfoRead {
			out.Uplink.LID = strconv.Itoa(int(a.Info.LID))
		}
	}
	if r, ok := read[p.Place()]; ok {
		out.Read, out.Fault, out.Counters = true, r.Fault, copies[p.Place()]
		d.Refused = d.Refused || r.Fault == perfmgr.Refused || r.Fault == perfmgr.Malformed
		d.Silent = d.Silent || r.Fault == perfmgr.NoAnswer
	}
	d.Ports = append(d.Ports, out)
}

// octetsPerGigabit is 10^9 bits in octets.
const octetsPerGigabit = 1e9 / 8

// ratesOf are the data rate and the signalling rate of a link in octets per second, as
// infiniband_exporter counts them; 0 for what is not known.
func ratesOf(i *smp.PortInfo) (rate, raw float64) {
	lanes := map[smp.LinkWidth]float64{
		smp.LinkWidth1X: 1, smp.LinkWidth2X: 2, smp.LinkWidth4X: 4, smp.LinkWidth8X: 8, smp.LinkWidth12X: 12,
	}[i.LinkWidthActive]
	switch i.LinkSpeedExtActive {
	case smp.LinkSpeedFDR:
		rate, raw = 13.64, 14.0625
	case smp.LinkSpeedEDR:
		rate, raw = 25, 25.78125
	case smp.LinkSpeedHDR:
		rate, raw = 50, 50
	case smp.LinkSpeedNDR:
		rate, raw = 100, 100
	default:
		switch i.LinkSpeedActive {
		case smp.LinkSpeedSDR:
			rate, raw = 2, 2.5
		case smp.LinkSpeedDDR:
			rate, raw = 4, 5
		case smp.LinkSpeedQDR:
			rate, raw = 8, 10
		}
	}
	return rate * lanes * octetsPerGigabit, raw * lanes * octetsPerGigabit
}
