// This file connects an end port of a simulated fabric with its subnet management
// agent and its performance agent.
//
//	Port      an end port as package endpoint sees it: the current values of the agent
//	Look      values whose changes a consumer learns of, and Tell, which reports them
//	Perform   the answer of the performance agent behind QP1

package fabric

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// EndPort is an end port. It holds nothing but the way to its agent, which is
// another after the node was off.
type EndPort struct {
	Node   *WiredNode
	Number ib.PortNum

	agent *sma.Agent // whose view info is: every packet asks for it many times
	info  *smp.PortInfo
}

// Info is the port's PortInfo.
func (p *EndPort) Info() *smp.PortInfo {
	if p.agent != p.Node.Agent {
		p.agent, p.info = p.Node.Agent, p.Node.Agent.Port(p.Number)
	}
	return p.info
}

// PKeys is the port's P_Key table as far as it was written.
func (p *EndPort) PKeys() []ib.PKey { return p.Node.Agent.PKeys(p.Number) }

// PKeyTableLen is the number of entries that the table has.
func (p *EndPort) PKeyTableLen() int { return int(p.Node.Agent.NodeInfo(p.Number).PartitionCap) }

// GID is entry i of the GID table.
func (p *EndPort) GID(i int) (ib.GID, bool) {
	agent := p.Node.Agent
	guid, ok := agent.GUID(p.Number, i)
	return ib.MakeGID(agent.Port(p.Number).GIDPrefix, ib.PortGUID(guid)), ok
}

// OwnsGID reports whether a GID is one of the port's, under the subnet's prefix or
// the default one.
func (p *EndPort) OwnsGID(gid ib.GID) bool {
	for i := 0; ; i++ {
		own, ok := p.GID(i)
		if !ok {
			return false
		}
		if own.PortGUID() != 0 && (own == gid || gid == ib.MakeGID(ib.DefaultGIDPrefix, own.PortGUID())) {
			return true
		}
	}
}

// EndPortSeen is what the consumer of an end node was last told of its port.
type EndPortSeen struct {
	Active bool
	lid    ib.LID
	lmc    ib.LMC
	smLID  ib.LID
	smSL   ib.SL
	prefix uint64
	guids  []uint64
}

// Look takes down what a consumer is told of when it changes.
func (p *EndPort) Look() EndPortSeen {
	info := p.Info()
	s := EndPortSeen{
		Active: info.PortState == smp.PortActive, lid: info.LID, lmc: info.LMC,
		smLID: info.MasterSMLID, smSL: info.MasterSMSL, prefix: info.GIDPrefix,
	}
	for i := 0; ; i++ {
		guid, ok := p.Node.Agent.GUID(p.Number, i)
		if !ok {
			return s
		}
		s.guids = append(s.guids, guid)
	}
}

// Tell announces how s differs from before, but for the state.
func (s *EndPortSeen) Tell(d *endpoint.Device, n ib.PortNum, before *EndPortSeen) {
	if s.lid != before.lid || s.lmc != before.lmc {
		d.Announce(endpoint.EventLIDChange, n)
	}
	if s.prefix != before.prefix || !slices.Equal(s.guids, before.guids) {
		d.Announce(endpoint.EventGIDChange, n)
	}
	if s.smLID != before.smLID || s.smSL != before.smSL {
		d.Announce(endpoint.EventSMChange, n)
	}
}

// Perform answers a packet for the performance agent behind QP1, which is there whatever
// else uses QP1. Ok is false for all else, and for what QP1 would refuse, so that the end
// node refuses it.
func (p *EndPort) Perform(counters *pma.Agent, bytes []byte) (answer []byte, ok bool) {
	v, err := packet.Parse(bytes)
	if err != nil || v.DETH == nil || v.BTH.DestQP() != ib.QP1 || len(v.Payload) != mad.Size ||
		mad.Class(v.Payload[mad.OffsetClass]) != mad.ClassPerfMgt || mad.Method(v.Payload[mad.OffsetMethod]).IsResponse() ||
		v.BTH.OpCode() != packet.MakeOpCode(packet.UD, packet.SendOnly) || v.LRH.VL() == ib.VLManagement ||
		v.DETH.QKey() != ib.QKeyGSI || v.GRH != nil && !p.OwnsGID(v.GRH.DGID()) {
		return nil, false
	}
	right, err := packet.CheckICRC(bytes)
	key := slices.IndexFunc(p.PKeys(), v.BTH.PKey().Matches)
	if err != nil || !right || key < 0 || p.Info().PortState < smp.PortArmed || !p.Node.Agent.HasLID(p.Number, v.LRH.DLID()) {
		return nil, false
	}
	var m pm.MAD
	if m.UnmarshalBinary(v.Payload) != nil || !counters.Handle(&m) {
		return nil, false
	}
	reply := packet.MADPacket{
		QP: ib.QP1, SLID: v.LRH.DLID(), DLID: v.LRH.SLID(), SL: v.LRH.SL(), PKey: p.PKeys()[key], PSN: v.BTH.PSN(),
	}
	if reply.MAD, err = m.AppendBinary(nil); err != nil {
		return nil, false
	}
	answer, err = reply.AppendBinary(nil)
	return answer, err == nil
}
