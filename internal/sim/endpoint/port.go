package endpoint

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Port is what an end port is at the moment; the agent of the device holds it.
// Nothing is remembered from one call to the next, and nothing is written.
type Port interface {
	// Info is the port's PortInfo.
	Info() *smp.PortInfo
	// PKeys is the P_Key table as far as it was written; entries behind its end
	// are empty.
	PKeys() []ib.PKey
	// PKeyTableLen is the number of entries that the table has, at least 1.
	PKeyTableLen() int
	// GID is entry i of the GID table, false where there is none.
	GID(i int) (ib.GID, bool)
}

// port is a port with what waits to leave by it.
type port struct {
	Port
	number ib.PortNum
	ready  ConnectionQueue[*context]
	smi    *QP
	gsi    *QP
	raw    []*QP // in order of creation
}

// key is entry i of the P_Key table.
func (p *port) key(i uint16) ib.PKey {
	if keys := p.PKeys(); int(i) < len(keys) {
		return keys[i]
	}
	return ib.PKeyInvalid
}

// mtu is the largest payload in bytes. A base port 0 has no NeighborMTU.
func (p *port) mtu() int {
	info := p.Info()
	if n := info.NeighborMTU.Bytes(); n != 0 {
		return n
	}
	return max(info.MTUCap.Bytes(), ib.MTU256.Bytes())
}

// owns reports whether lid is one of the port's addresses.
func (p *port) owns(lid ib.LID) bool {
	info := p.Info()
	return info.LID.IsUnicast() && lid>>info.LMC == info.LID>>info.LMC
}

// ownsGID reports whether gid is one of the port's, under the subnet's prefix or
// the default one.
func (p *port) ownsGID(gid ib.GID) bool {
	for i := 0; ; i++ {
		own, ok := p.GID(i)
		switch {
		case !ok:
			return false
		case own.PortGUID() == 0: // an empty entry
		case gid == own || gid == ib.MakeGID(ib.DefaultGIDPrefix, own.PortGUID()):
			return true
		}
	}
}

// DeviceFlags are what a device can do.
type DeviceFlags uint32

// The flags.
const (
	// BadPKeyCounter: PortAttr.BadPKeyCounter counts.
	BadPKeyCounter DeviceFlags = 1 << iota
	// BadQKeyCounter: PortAttr.QKeyViolationCounter counts.
	BadQKeyCounter
)

// DeviceAttr describes a device.
type DeviceAttr struct {
	Flags         DeviceFlags
	Ports         int
	MaxQPs        int
	MaxQueueDepth int
}

// QueryDevice tells what the device can do.
func (d *Device) QueryDevice() DeviceAttr {
	ports := 0
	for i := range d.ports {
		if d.ports[i].Port != nil {
			ports++
		}
	}
	return DeviceAttr{Flags: d.flags, Ports: ports, MaxQPs: MaxQPs, MaxQueueDepth: MaxQueueDepth}
}

// PortAttr describes a port as verbs show it.
type PortAttr struct {
	State        smp.PortState
	MaxMTU       ib.MTU
	ActiveMTU    ib.MTU
	LID          ib.LID
	LMC          ib.LMC
	SMLID        ib.LID
	SMSL         ib.SL
	PKeyTableLen int
	GIDTableLen  int
	// The counters are PortInfo's and stop at 0xFFFF with them. They stay 0 on
	// a device without the flag.
	BadPKeyCounter       uint32
	QKeyViolationCounter uint32
}

// QueryPort describes port n.
func (d *Device) QueryPort(n ib.PortNum) (PortAttr, error) {
	p, err := d.port(n)
	if err != nil {
		return PortAttr{}, err
	}
	info := p.Info()
	a := PortAttr{
		State: info.PortState, MaxMTU: info.MTUCap, ActiveMTU: info.NeighborMTU,
		LID: info.LID, LMC: info.LMC, SMLID: info.MasterSMLID, SMSL: info.MasterSMSL,
		PKeyTableLen: p.PKeyTableLen(), GIDTableLen: int(info.GUIDCap),
	}
	if d.flags&BadPKeyCounter != 0 {
		a.BadPKeyCounter = uint32(info.PKeyViolations)
	}
	if d.flags&BadQKeyCounter != 0 {
		a.QKeyViolationCounter = uint32(info.QKeyViolations)
	}
	return a, nil
}

// QueryPKey reads entry i of port n's P_Key table. An empty entry is no error:
// its key is not valid.
func (d *Device) QueryPKey(n ib.PortNum, i int) (ib.PKey, error) {
	p, err := d.port(n)
	if err != nil {
		return 0, err
	}
	if size := p.PKeyTableLen(); i < 0 || i >= size {
		return 0, fmt.Errorf("port %d: P_Key index %d: want 0 to %d: %w", n, i, size-1, ErrPKeyIndex)
	}
	return p.key(uint16(i)), nil
}
