package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// linearForwarding is a block of a linear forwarding table. Beyond what a sweep reads
// there are no routes.
var linearForwarding = Attribute{
	Held: func(p *observed.Port, block uint32) (Encoder, bool) {
		return &smp.LinearForwardingTable{Ports: smp.LinearBlock(p.Node.Switch.LFT, int(block))}, true
	},
	Wanted: func(p *observed.Port, d *observed.Desired, block uint32) Encoder {
		return &smp.LinearForwardingTable{Ports: smp.LinearBlock(d.Nodes[p.Node.Index].LFT, int(block))}
	},
	Enter: func(p *observed.Port, d *observed.Desired, block uint32, data []byte) error {
		var t smp.LinearForwardingTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		table := d.Nodes[p.Node.Index].LFT
		copy(table[min(int(block)*smp.LIDsPerLinearBlock, len(table)):], t.Ports[:])
		return nil
	},
	fill: (*Plan).fillLinear,
}

// randomForwarding is a block of a random forwarding table.
var randomForwarding = Attribute{
	Held: func(p *observed.Port, block uint32) (Encoder, bool) {
		return &smp.RandomForwardingTable{Entries: smp.RandomBlock(p.Node.Switch.RFT, int(block))}, true
	},
	Wanted: func(p *observed.Port, d *observed.Desired, block uint32) Encoder {
		return &smp.RandomForwardingTable{Entries: smp.RandomBlock(d.Nodes[p.Node.Index].RFT, int(block))}
	},
	Enter: func(p *observed.Port, d *observed.Desired, block uint32, data []byte) error {
		var t smp.RandomForwardingTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		want := &d.Nodes[p.Node.Index]
		if want.RFT == nil {
			want.RFT, want.DefaultPort = slices.Clone(p.Node.Switch.RFT), p.Node.Switch.Info.DefaultPort
		}
		if start := int(block) * smp.RandomEntriesPerBlock; start < len(want.RFT) {
			copy(want.RFT[start:], t.Entries[:])
		}
		return nil
	},
}

// switchInfo has the top of the linear table and the default port of the random one as
// they are wanted, and all else as it is.
var switchInfo = Attribute{
	Held: func(p *observed.Port, _ uint32) (Encoder, bool) { return &p.Node.Switch.Info, true },
	Wanted: func(p *observed.Port, d *observed.Desired, _ uint32) Encoder {
		info := p.Node.Switch.Info
		enterRoutes(&info, &d.Nodes[p.Node.Index])
		return &info
	},
	// The table makes the top.
	Enter: func(p *observed.Port, d *observed.Desired, _ uint32, data []byte) error {
		var info smp.SwitchInfo
		err := info.UnmarshalBinary(data)
		d.Nodes[p.Node.Index].DefaultPort = info.DefaultPort
		return err
	},
	fill: (*Plan).fillSwitchInfo,
}

// enterRoutes makes SwitchInfo what the wanted forwarding tables need.
func enterRoutes(info *smp.SwitchInfo, want *observed.DesiredNode) {
	if len(want.LFT) > 0 {
		info.LinearFDBTop = ib.LID(len(want.LFT) - 1)
	}
	if len(want.RFT) > 0 {
		info.DefaultPort = want.DefaultPort
	}
}

// Share has switches that show the linear forwarding tables that are wanted keep none of their
// own. The wanted ones are not changed from then on.
func (p *Plan) Share() {
	for _, s := range p.Stages {
		if s.Name != forwardingTables {
			continue
		}
		for _, n := range p.fabric.Nodes {
			if want := p.desired.Nodes[n.Index].LFT; n.Switch != nil && want != nil {
				n.Switch.ShareLFT(want)
			}
		}
		return
	}
}

func (p *Plan) diffForwarding(n *observed.Node, add addFunc) {
	want, have := &p.desired.Nodes[n.Index], n.Switch
	management := &n.Ports[0]
	for block := 0; block*smp.LIDsPerLinearBlock < len(want.LFT); block++ {
		if block < len(have.LFTRead) && have.LFTRead[block] && sameRoutes(have.LFT, want.LFT, block) {
			continue
		}
		add(Forwarding, management, smp.AttrLinearForwardingTable, uint32(block))
	}
	for block := 0; block*smp.RandomEntriesPerBlock < len(want.RFT); block++ {
		if block < len(have.RFTRead) && have.RFTRead[block] && smp.RandomBlock(have.RFT, block) == smp.RandomBlock(want.RFT, block) {
			continue
		}
		add(Forwarding, management, smp.AttrRandomForwardingTable, uint32(block))
	}
	if p.wantSwitchInfo(n) != have.Info {
		add(SwitchSettings, management, smp.AttrSwitchInfo, 0)
	}
}

// sameRoutes compares a block of two tables: where both have it whole, without
// a copy.
func sameRoutes(a, b []ib.PortNum, block int) bool {
	start, end := block*smp.LIDsPerLinearBlock, (block+1)*smp.LIDsPerLinearBlock
	if end <= min(len(a), len(b)) {
		return slices.Equal(a[start:end], b[start:end])
	}
	return smp.LinearBlock(a, block) == smp.LinearBlock(b, block)
}

// wantSwitchInfo is SwitchInfo as it should be after the forwarding tables
// were written.
func (p *Plan) wantSwitchInfo(n *observed.Node) smp.SwitchInfo {
	want, info := &p.desired.Nodes[n.Index], n.Switch.Info
	enterRoutes(&info, want)
	if want.SetLifeTime && n.Ports[0].Forgets&observed.ElementLifeTimeValue == 0 {
		info.LifeTimeValue = want.LifeTimeValue
	}
	p.wantMulticastInfo(n, &info)
	return info
}
