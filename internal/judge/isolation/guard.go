package isolation

import (
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// readKeys appends to keys what was read of p's table.
func readKeys(keys []ib.PKey, p *observed.Port) []ib.PKey {
	for _, k := range p.ReadPKeys() {
		if k.IsValid() {
			keys = append(keys, k)
		}
	}
	return keys
}

// entries calls yield for each valid entry that was read of p's table.
func entries(p *observed.Port, yield func(index int, k ib.PKey)) {
	for i, k := range p.ReadPKeys() {
		if k.IsValid() {
			yield(i, k)
		}
	}
}

// carriesData reports whether packets other than management may cross the link
// of p, as far as its PortInfo was read.
func carriesData(p *observed.Port) bool {
	return p.InfoRead && p.Info.PortState != smp.PortDown && p.Info.PortState != smp.PortInit
}

// guard is what stands between an end port and the subnet.
type guard struct {
	// isShared is the switch port, or the end port itself when there is none.
	at *observed.Port
	// enforced reports whether the switch port holds the end port to its table in
	// both directions, and that the table was read.
	enforced bool
	// gap says why nothing holds the end port; empty when something does, when
	// nothing has to, and when that is not known.
	gap string
	// unread names the attributes of at that were needed and not read.
	unread []string
}

// guardOf finds what holds the end port p to its partitions.
func guardOf(p *observed.Port) guard {
	switch {
	case p.Node.Switch != nil, p.Peer == nil:
		return guard{at: p}
	case p.Peer.Node.Switch == nil:
		return guard{at: p, gap: "cabled to " + p.Peer.String() + " without a switch between them"}
	case p.Peer.Num == 0:
		return guard{at: p, gap: "cabled to the management port of a switch"}
	}
	return guardAt(p.Peer)
}

// guardAt judges an external switch port.
func guardAt(s *observed.Port) guard {
	g := guard{at: s}
	info := &s.Node.Switch.Info
	if !s.Node.Switch.InfoRead {
		g.unread = append(g.unread, "SwitchInfo")
	}
	if !s.InfoRead {
		g.unread = append(g.unread, "PortInfo")
	}
	if g.unread != nil {
		return g
	}
	if g.gap = gapOf(s, info); g.gap != "" {
		return g
	}
	if !isKnown(s) {
		g.unread = append(g.unread, "P_KeyTable")
	}
	g.enforced = g.unread == nil
	return g
}

func gapOf(s *observed.Port, info *smp.SwitchInfo) string {
	if info.PartitionEnforcementCap == 0 {
		return "PartitionEnforcementCap is 0"
	}
	var gaps []string
	for _, d := range []struct {
		name    string
		can, on bool
		element observed.Element
	}{
		{"Inbound", info.InboundEnforcementCap, s.Info.PartitionEnforcementInbound, observed.ElementPartitionEnforcementInbound},
		{"Outbound", info.OutboundEnforcementCap, s.Info.PartitionEnforcementOutbound, observed.ElementPartitionEnforcementOutbound},
	} {
		switch {
		case !d.can:
			gaps = append(gaps, d.name+"EnforcementCap is 0")
		case !d.on && s.Forgets&d.element != 0:
			gaps = append(gaps, "PartitionEnforcement"+d.name+" is 0: the switch does not keep it")
		case !d.on:
			gaps = append(gaps, "PartitionEnforcement"+d.name+" is 0")
		}
	}
	return strings.Join(gaps, ", ")
}

// isKnown reports whether the whole of p's table was read. There is no table
// of no entries: a device that reports one keeps it to itself.
func isKnown(p *observed.Port) bool {
	cut := p.IsEnd() && int(p.Node.Info.PartitionCap) > observed.EndPKeysMax // the rest is not read
	return p.PKeyCap() > 0 && !cut && p.PKeysKnown() && len(p.PKeys) >= p.PKeyCap()
}
