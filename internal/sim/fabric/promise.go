package fabric

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// levelTo is the service level of a management packet of an end port to a LID: the
// port's MasterSMSL to its master, else asked. Along a directed route a port cannot
// tell whom it leads to. Agents that keep the level of a request in its answer, as
// those of today do, are told to by sma.Options.AnswersKeepSL.
func (f *Fabric) levelTo(at int32, num ib.PortNum, dlid ib.LID, asked ib.SL) ib.SL {
	n := &f.nodes[at]
	info := n.Agent.Port(n.EndPort(num))
	if info == nil || !dlid.IsUnicast() || dlid != info.MasterSMLID || n.Agent.AnswersKeepSL() {
		return asked
	}
	return info.MasterSMSL
}

// inTime is how long an agent takes for a packet that would take it so long: no
// longer than the end port promises by RespTimeValue. Fault.Late breaks the promise.
func (f *Fabric) inTime(p *carried, delay time.Duration) time.Duration {
	n := &f.nodes[p.node]
	info := n.Agent.Port(n.EndPort(p.port))
	if info == nil {
		return delay
	}
	return min(delay, info.RespTimeValue.Duration())
}
