package fabric

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// SetDiagCode gives an end port another state of health; a port of a switch stands
// for its port 0. A port that says self-test, initializing or hard failure carries
// no data: its link falls back to Initialize and stays there, while its agent can
// still be asked why.
func (f *Fabric) SetDiagCode(g ib.NodeGUID, num ib.PortNum, code smp.DiagCode) error {
	i, agent, err := f.agentAt("DiagCode", g, num)
	if err != nil {
		return err
	}
	f.follows(i, agent.SetDiagCode(f.queue.Now, num, code))
	return nil
}

// SetVendorDiag gives an end port a block of diagnostic data; a port of a switch
// stands for its port 0. It is gone when the node is switched on again.
func (f *Fabric) SetVendorDiag(g ib.NodeGUID, num ib.PortNum, index uint16, block smp.VendorDiag) error {
	_, agent, err := f.agentAt("VendorDiag", g, num)
	if err != nil {
		return err
	}
	agent.SetVendorDiag(num, index, block)
	return nil
}

// Own has the agent of a node that is on carry out a request as if it had come to end port num
// from the node itself, with all that follows on its links. It fails when the agent refuses it.
func (f *Fabric) Own(g ib.NodeGUID, num ib.PortNum, m *mad.SMP) error {
	i, _, err := f.agentAt("own", g, num)
	if err != nil {
		return err
	}
	if f.own(i, sma.Ingress{Port: num}, m) != sma.Answered || m.Status != mad.StatusOK {
		return fmt.Errorf("own: node %v refuses its own Set of %s: status %v", g, smp.AttributeName(m.AttributeID), m.Status)
	}
	return nil
}

func (f *Fabric) own(at int32, from sma.Ingress, m *mad.SMP) sma.Verdict {
	agent := f.nodes[at].Agent
	r := agent.Handle(f.queue.Now, from, m)
	moved, again := f.retrains(at, r.Effects)
	f.follows(at, r.Effects)
	if again && r.Verdict == sma.Answered {
		agent.ShowLink(moved, m)
	}
	f.data.AfterSet(at)
	return r.Verdict
}

// agentAt is the agent of a port of a node that is on.
func (f *Fabric) agentAt(what string, g ib.NodeGUID, num ib.PortNum) (int32, *sma.Agent, error) {
	i, ok := f.wiring.Index(g)
	switch {
	case !ok:
		return 0, nil, fmt.Errorf("%s: node %v: no such node in this fabric", what, g)
	case f.nodes[i].Off:
		return 0, nil, fmt.Errorf("%s: node %v is off", what, g)
	case f.nodes[i].Agent.Port(num) == nil:
		return 0, nil, fmt.Errorf("%s: node %v has no port %d", what, g, num)
	}
	return i, f.nodes[i].Agent, nil
}

// testItself begins the self-test of a node that was switched on, if it has one, and
// lets its links train when that is over.
func (f *Fabric) testItself(at int32) {
	n := &f.nodes[at]
	agent := n.Agent
	ready := func() {
		for i := n.First; i <= n.First+int32(n.Last); i++ {
			f.trainLater(i)
		}
	}
	if f.config.SelfTest == 0 {
		ready()
		return
	}
	f.follows(at, agent.SetSelfTest(f.queue.Now, true))
	f.At(f.queue.Now+f.config.SelfTest, func() {
		if n.Agent == agent && !n.Off { // and was not switched on once more
			f.follows(at, agent.SetSelfTest(f.queue.Now, false))
			ready()
		}
	})
}

// training tells the agents at both ends of a cable whether their link trains.
func (f *Fabric) training(i int32, on bool) {
	if f.ports[i].Peer == NoPort {
		return
	}
	for _, end := range []int32{i, f.ports[i].Peer} {
		at := &f.ports[end]
		if n := &f.nodes[at.Node]; !n.Off {
			n.Agent.SetTraining(at.Num, on)
		}
	}
}
