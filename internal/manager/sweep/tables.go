package sweep

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// readTables asks the next nodes for their tables, unless enough was asked
// already that has not been answered.
func (d *Discovery) readTables() {
	for d.tabled < len(d.fabric.Nodes) && d.asked < ahead {
		n := d.fabric.Nodes[d.tabled]
		d.tabled++
		d.readTablesOf(n)
	}
}

// readTablesOf asks for the tables of every port that matters to a manager: the
// P_Key tables of end ports and of the switch ports that face them or nobody
// known, and what the options add. With forwarding tables come the P_Key tables
// of ports between switches that check keys.
func (d *Discovery) readTablesOf(n *observed.Node) {
	for i := range n.Ports {
		p := &n.Ports[i]
		if !p.Reached || (i == 0 && n.Switch == nil) {
			continue
		}
		if p.IsEnd() || p.FacesEnd() || p.FacesStranger() || d.options.Audit || d.options.Forwarding && checksKeys(p) {
			d.readPKeys(p)
		}
		if d.options.Audit && p.IsEnd() && p.InfoRead {
			d.readIdentity(p)
		}
		if d.options.Aliases && !d.options.Audit && p.IsEnd() && p.InfoRead && p.Info.GUIDCap > 1 {
			d.readGUIDs(p)
		}
		if p.IsEnd() && p.InfoRead && p.Info.DiagCode != 0 {
			d.readDiag(p)
		}
		if d.options.QoS && p.InfoRead && p.Info.VLCap > 1 {
			d.readQoS(p)
		}
	}
	if n.Switch == nil {
		return
	}
	if d.options.Forwarding {
		d.readForwarding(n)
	}
	d.readMulticast(n)
}

// readIdentity asks an end port for its other GUIDs and for the subnet manager
// that it says is behind it.
func (d *Discovery) readIdentity(p *observed.Port) {
	if p.Info.CapabilityMask.Has(smp.CapIsSM) {
		d.read(p, smp.AttrSMInfo, 0, nil)
	}
	d.readGUIDs(p)
}

func (d *Discovery) readGUIDs(p *observed.Port) {
	for block := range p.GUIDBlocks() {
		d.read(p, smp.AttrGUIDInfo, uint32(block), nil)
	}
}

func (d *Discovery) readMulticast(n *observed.Node) {
	blocks := n.MFTBlocks()
	if !d.options.Multicast {
		blocks = min(blocks, (int(d.options.MulticastTop)-int(ib.LIDMulticastMin))/smp.MLIDsPerBlock+1)
		if d.options.MulticastTop < ib.LIDMulticastMin {
			return
		}
	}
	for block := range blocks {
		for position := range n.MFTPositions() {
			d.read(&n.Ports[0], smp.AttrMulticastForwardingTable, smp.MFTModifier(uint16(block), uint8(position)), nil)
		}
	}
}

// checksKeys reports whether packets may be refused at p for their keys. Between
// switches that is unusual, and then a packet's way cannot be told without the
// table.
func checksKeys(p *observed.Port) bool {
	return p.InfoRead && p.Peer != nil && (p.Info.PartitionEnforcementInbound || p.Info.PartitionEnforcementOutbound)
}

func (d *Discovery) readPKeys(p *observed.Port) {
	if p.IsEnd() && p.PKeyCap() == 0 {
		d.fault(p, fmt.Errorf("NodeInfo.PartitionCap is 0, want at least 1"))
	}
	selector := ib.PortNum(0) // of the port itself on a CA or router
	if p.Node.Switch != nil {
		selector = p.Num
	}
	for block := range p.PKeyBlocks() {
		d.read(p, smp.AttrPKeyTable, smp.PKeyModifier(selector, uint16(block)), nil)
	}
}

// readForwarding reads the part of the forwarding table that is in force.
func (d *Discovery) readForwarding(n *observed.Node) {
	info := &n.Switch.Info
	management := &n.Ports[0]
	if info.LinearFDBCap != 0 && info.LinearFDBTop != 0 {
		top := min(int(info.LinearFDBTop), int(info.LinearFDBCap)-1)
		for block := range top/len(smp.LinearForwardingTable{}.Ports) + 1 {
			d.read(management, smp.AttrLinearForwardingTable, uint32(block), nil)
		}
	}
	perBlock := len(smp.RandomForwardingTable{}.Entries)
	for block := range (int(info.RandomFDBCap) + perBlock - 1) / perBlock {
		d.read(management, smp.AttrRandomForwardingTable, uint32(block), nil)
	}
}

func (d *Discovery) readQoS(p *observed.Port) {
	selector := ib.PortNum(0)
	if p.Node.Switch == nil {
		d.read(p, smp.AttrSLToVLMappingTable, 0, nil)
	} else if p.Num != 0 && p.IsUp() {
		selector = p.Num
		for in := range p.Node.Ports {
			if in != int(p.Num) && (in == 0 || p.Node.Ports[in].IsUp()) {
				d.read(p, smp.AttrSLToVLMappingTable, smp.SLToVLModifier(ib.PortNum(in), p.Num), nil)
			}
		}
	} else {
		return
	}
	for part, entries := range []int{0, int(p.Info.VLArbitrationLowCap), int(p.Info.VLArbitrationLowCap) - 32,
		int(p.Info.VLArbitrationHighCap), int(p.Info.VLArbitrationHighCap) - 32} {
		if part > 0 && entries > 0 {
			d.read(p, smp.AttrVLArbitrationTable, smp.VLArbModifier(smp.VLArbPart(part), selector), nil)
		}
	}
}

// ErrDiagnosis is in every fault that tells what a port says of its own health, as
// far as it says it: all of that was read.
var ErrDiagnosis = errors.New("the port says so of itself")

// diagnosis is such a fault.
type diagnosis string

// Error is what the port says.
func (d diagnosis) Error() string { return string(d) }

// Is reports that d is an ErrDiagnosis.
func (d diagnosis) Is(target error) bool { return target == ErrDiagnosis }

// readDiag reports what a port says of its own health, with the vendor's
// blocks when the code points at them (VendorDiag and PortInfo.DiagCode).
func (d *Discovery) readDiag(p *observed.Port) {
	code := p.Info.DiagCode
	about := fmt.Sprintf("DiagCode 0x%04x: %s", uint16(code), code.Meaning())
	if index, ok := code.VendorDiagIndex(); ok {
		d.readDiagBlock(p, about, index, nil)
		return
	}
	if vendor, ok := code.VendorCode(); ok {
		about += fmt.Sprintf(", vendor code 0x%03x", vendor)
	}
	d.fault(p, diagnosis(about))
}

func (d *Discovery) readDiagBlock(p *observed.Port, about string, index uint16, blocks []byte) {
	d.get(p.Path, p.MKey(), p.RespTime(), smp.AttrVendorDiag, uint32(index), func(r transact.Reply) {
		err := r.Err
		if err == nil {
			err = p.Absorb(smp.AttrVendorDiag, uint32(index), r.SMP.Data[:])
		}
		if err != nil {
			d.fault(p, fmt.Errorf("%s; VendorDiag block %d: %w", about, index, err))
			return
		}
		v := p.VendorDiag[uint32(index)]
		blocks = append(blocks, v.DiagData[:]...)
		switch {
		case v.NextIndex == 0:
			d.fault(p, diagnosis(fmt.Sprintf("%s; vendor data %x", about, blocks)))
		case len(blocks) >= observed.MaxDiagBlocks*len(v.DiagData):
			d.fault(p, diagnosis(fmt.Sprintf("%s; vendor data %x, cut after %d blocks", about, blocks, observed.MaxDiagBlocks)))
		default:
			d.readDiagBlock(p, about, v.NextIndex, blocks)
		}
	})
}
