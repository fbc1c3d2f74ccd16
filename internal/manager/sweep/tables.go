package sweep

import (
	"errors"
	"fmt"

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

// readTablesOf asks for the tables of a node that the options want, in the order of the
// table of attributes in package observed, and reports what its ports say of themselves.
func (d *Discovery) readTablesOf(n *observed.Node) {
	if d.completes {
		d.readMoreOf(n)
		return
	}
	n.Tables(d.options.scope(), d.readBlock)
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Reached && (i > 0 || n.Switch != nil) {
			d.checkSize(p)
			d.readDiag(p)
		}
	}
}

// scope is what the options say of tables.
func (o *Options) scope() observed.Scope {
	return observed.Scope{
		Forwarding: o.Forwarding, QoS: o.QoS, Audit: o.Audit, Aliases: o.Aliases,
		Multicast: o.Multicast, MulticastTop: o.MulticastTop,
	}
}

// readBlock asks for a block and enters the answer; of VendorDiag for all that follow, too.
func (d *Discovery) readBlock(b observed.Block) {
	if b.Attribute == smp.AttrVendorDiag {
		d.readDiagBlock(b.Port, uint16(b.Modifier), nil)
		return
	}
	d.read(b.Port, b.Attribute, b.Modifier, nil)
}

// readPKeys asks for the P_Key table of a port.
func (d *Discovery) readPKeys(p *observed.Port) {
	d.checkSize(p)
	p.PKeyTable(d.readBlock)
}

// checkSize reports an end port without room for a P_Key.
func (d *Discovery) checkSize(p *observed.Port) {
	if p.IsEnd() && p.PKeyCap() == 0 {
		d.fault(p, fmt.Errorf("NodeInfo.PartitionCap is 0, want at least 1"))
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

// readDiag reports what a port says of its own health where its code says all: when the
// code points at blocks of VendorDiag, readDiagBlock does so with them.
func (d *Discovery) readDiag(p *observed.Port) {
	if !p.IsEnd() || !p.InfoRead || p.Info.DiagCode == 0 {
		return
	}
	code := p.Info.DiagCode
	if _, more := code.VendorDiagIndex(); more {
		return
	}
	about := aboutDiag(code)
	if vendor, ok := code.VendorCode(); ok {
		about += fmt.Sprintf(", vendor code 0x%03x", vendor)
	}
	d.fault(p, diagnosis(about))
}

func aboutDiag(code smp.DiagCode) string {
	return fmt.Sprintf("DiagCode 0x%04x: %s", uint16(code), code.Meaning())
}

// readDiagBlock asks for a block of VendorDiag and for those that follow it, and reports
// them together. blocks are the bytes of those before.
func (d *Discovery) readDiagBlock(p *observed.Port, index uint16, blocks []byte) {
	about := aboutDiag(p.Info.DiagCode)
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
			d.readDiagBlock(p, v.NextIndex, blocks)
		}
	})
}
