package pma

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
)

// Agent is the performance-management agent of one device.
type Agent struct {
	first ib.PortNum // the lowest port number: 0 on a switch
	ports []Port     // by number
}

// New makes the agent of a device with so many ports, a switch's port 0 not
// counted.
func New(ports ib.PortNum, isSwitch bool) *Agent {
	a := &Agent{first: 1, ports: make([]Port, int(ports)+1)}
	if isSwitch {
		a.first = 0
	}
	return a
}

// Port is a port's counters, nil when there is no such port.
func (a *Agent) Port(n ib.PortNum) *Port {
	if n < a.first || int(n) >= len(a.ports) {
		return nil
	}
	return &a.ports[n]
}

// respTime is how long an answer takes at most: 4.096 us * 2^8, a millisecond.
const respTime ib.TimeValue = 8

// capabilities are what ClassPortInfo announces.
const (
	capabilities  = pm.CapAllPortSelect | pm.CapExtendedWidth | pm.CapPortXmitWait | pm.CapQP1Dropped | mad.ClassCapCapabilityMask2
	capabilities2 = pm.Cap2ExtendedErrors
)

// Handle turns a datagram into its answer, and reports whether it has one.
func (a *Agent) Handle(m *pm.MAD) bool {
	if m.Method.IsResponse() {
		return false
	}
	m.Status = a.serve(m)
	m.Method = mad.MethodGetResp
	return true
}

func (a *Agent) serve(m *pm.MAD) mad.Status {
	set := m.Method == mad.MethodSet
	switch {
	case m.BaseVersion != mad.BaseVersion || m.ClassVersion != pm.ClassVersion:
		return mad.StatusBadVersion
	case m.Method != mad.MethodGet && !set:
		return mad.StatusUnsupportedMethod
	}
	switch m.AttributeID {
	case mad.AttrClassPortInfo:
		if set {
			return mad.StatusUnsupportedAttrib // it sends no traps, and all else is read only
		}
		return answer(m, &mad.ClassPortInfo{
			BaseVersion: mad.BaseVersion, ClassVersion: pm.ClassVersion,
			CapabilityMask: capabilities, CapabilityMask2: capabilities2, RespTimeValue: respTime,
		})
	case pm.AttrPortCounters:
		return serveCounters(a, m, set, new(pm.PortCounters))
	case pm.AttrPortCountersExtended:
		return serveCounters(a, m, set, new(pm.PortCountersExtended))
	case pm.AttrPortRcvErrorDetails:
		return serveCounters(a, m, set, new(pm.PortRcvErrorDetails))
	case pm.AttrPortXmitDiscardDetails:
		return serveCounters(a, m, set, new(pm.PortXmitDiscardDetails))
	}
	return mad.StatusUnsupportedAttrib
}

// serveCounters answers for the attribute whose value v is to hold.
func serveCounters(a *Agent, m *pm.MAD, set bool, v pm.Attribute) mad.Status {
	if v.UnmarshalBinary(m.Data[:]) != nil {
		return mad.StatusInvalidField
	}
	selected := a.selected(ib.PortNum(m.Data[offPortSelect]))
	if len(selected) == 0 {
		return mad.StatusInvalidField
	}
	totals := make([]uint64, len(countersOf(v, &selected[0])))
	for i := range selected {
		for j, c := range countersOf(v, &selected[i]) {
			if set && c.selected {
				*c.register = get(c.field)
			}
			totals[j] += *c.register
		}
	}
	for j, c := range countersOf(v, &selected[0]) {
		put(c.field, totals[j], c.bits)
	}
	return answer(m, v)
}

// offPortSelect is where every attribute with counters has its PortSelect.
const offPortSelect = 1

// selected are the ports that a PortSelect names.
func (a *Agent) selected(n ib.PortNum) []Port {
	switch {
	case n == pm.AllPorts:
		return a.ports[a.first:]
	case a.Port(n) != nil:
		return a.ports[n : n+1]
	}
	return nil
}

// answer puts an attribute into the datagram, nothing behind it.
func answer(m *pm.MAD, v pm.Attribute) mad.Status {
	b, err := v.AppendBinary(m.Data[:0:0])
	if err != nil {
		return mad.StatusInvalidField
	}
	clear(m.Data[copy(m.Data[:], b):])
	return mad.StatusOK
}
