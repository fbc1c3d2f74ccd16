package kernel

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// Management classes with rules of their own.
const (
	classDeviceMgt  mad.Class = 0x06
	classDeviceAdm  mad.Class = 0x10
	classBIS        mad.Class = 0x12
	classBM         mad.Class = 0x05
	vendorFirst     mad.Class = 0x30 // of those with an OUI
	vendorLast      mad.Class = 0x4F
	classLimit      mad.Class = 80 // classes from here on have no agents
	classVersionEnd           = 0x83
	// maxOUIs is how many vendors may share one class and version.
	maxOUIs = 8
)

func isVendor(c mad.Class) bool { return c >= vendorFirst && c <= vendorLast }

func isSubnet(c mad.Class) bool { return c == mad.ClassSubnLID || c == mad.ClassSubnDirected }

// hasRMPP reports whether datagrams of the class have an RMPP header.
func hasRMPP(c mad.Class) bool {
	return c == mad.ClassSubnAdm || c == classDeviceMgt || c == classDeviceAdm || c == classBIS || isVendor(c)
}

// headSize is where the kernel takes the data of a class to begin.
func headSize(c mad.Class) int {
	switch {
	case c == mad.ClassSubnAdm:
		return 56
	case c == classDeviceMgt, c == classDeviceAdm, c == classBIS:
		return 64
	case isVendor(c):
		return 40
	}
	return mad.HeaderSize
}

// register adds an agent to a file, at a place in it that is free.
func (l *Layer) register(f *File, slot int, r umad.Registration) umad.Errno {
	if errno := l.judge(&r); errno != umad.OK {
		return errno
	}
	keys := keysOf(&r)
	for _, k := range keys {
		if l.methods[k] != nil {
			return umad.EINVAL
		}
	}
	if isVendor(r.Class) && len(keys) > 0 && l.vendorsFull(keys[0]) {
		return umad.EINVAL
	}
	a := &agent{id: l.newID(), file: f, slot: uint32(slot), asked: r, active: true}
	for _, k := range keys {
		l.methods[k] = a
	}
	l.agents[a.id] = a
	f.agents[slot] = a
	return umad.OK
}

// judge holds a registration against the rules that need no other agent.
func (l *Layer) judge(r *umad.Registration) umad.Errno {
	switch {
	case r.RMPPVersion > mad.RMPPVersion:
		return umad.EINVAL
	case r.QPN == 0 && l.config.NoSubnetManagement:
		return umad.EPROTONOSUPPORT
	case r.Class == 0: // answers only: nothing more to say
		return umad.OK
	case r.ClassVersion >= classVersionEnd,
		r.Class >= classLimit && r.Class != mad.ClassSubnDirected,
		isVendor(r.Class) && r.OUI == 0,
		r.RMPPVersion != 0 && !hasRMPP(r.Class),
		isSubnet(r.Class) != (r.QPN == 0):
		return umad.EINVAL
	}
	return umad.OK
}

// keysOf is what a registration claims.
func keysOf(r *umad.Registration) (out []methodKey) {
	if r.Class == 0 {
		return nil
	}
	k := methodKey{class: r.Class, version: r.ClassVersion}
	if isVendor(r.Class) {
		k.oui = r.OUI
	}
	for m := range mad.MethodResponse {
		if r.Methods.Has(m) {
			k.method = m
			out = append(out, k)
		}
	}
	return out
}

// vendorsFull reports whether as many other vendors as may share the class and
// version of k.
func (l *Layer) vendorsFull(k methodKey) bool {
	others := make(map[uint32]bool)
	for other := range l.methods {
		if other.class == k.class && other.version == k.version && other.oui != k.oui {
			others[other.oui] = true
		}
	}
	return len(others) >= maxOUIs
}

func (l *Layer) newID() uint32 {
	for {
		if l.lastID++; l.lastID > agentIDMax {
			l.lastID = 1
		}
		if l.agents[l.lastID] == nil {
			return l.lastID
		}
	}
}

// unregister takes an agent away. What it asked is not answered any more; what
// it got and nobody read can still be read.
func (l *Layer) unregister(a *agent) {
	a.active = false
	for _, k := range keysOf(&a.asked) {
		delete(l.methods, k)
	}
	delete(l.agents, a.id)
	if a.long != nil {
		l.joining = slices.DeleteFunc(l.joining, func(b *agent) bool { return a == b })
	}
	f := a.file
	f.agents[a.slot] = nil
	for _, s := range f.outstanding() {
		if s.agent == a {
			l.end(s)
		}
	}
}

// find is the agent for a datagram that arrived.
func (l *Layer) find(m *[mad.Size]byte) *agent {
	class, version := mad.Class(m[mad.OffsetClass]), m[mad.OffsetClassVersion]
	if isResponse(m[:]) {
		return l.agents[uint32(transaction(m[:])>>32)]
	}
	if version >= classVersionEnd || class >= classLimit && class != mad.ClassSubnDirected {
		return nil
	}
	k := methodKey{class: class, version: version, method: mad.Method(m[mad.OffsetMethod]) &^ mad.MethodResponse}
	if isVendor(class) {
		k.oui = uint32(m[offOUI])<<16 | uint32(m[offOUI+1])<<8 | uint32(m[offOUI+2])
	}
	return l.methods[k]
}
