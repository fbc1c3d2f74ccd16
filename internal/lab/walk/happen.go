package walk

import (
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// policies is how many there are to choose from.
const policies = 5

// policy is one of several of the same fabric: two tenants at one border or another, with a
// group, with limited members, or for hosts that are not there.
func (w *walk) policy(n int) *policy.Policy {
	w.Helper()
	var names []string
	for _, h := range w.hosts[1:] {
		names = append(names, h.Description)
	}
	border, extra, as := len(names)/2, "", "full"
	switch n {
	case 1:
		border++
	case 2:
		extra = ", ipoib: true, sl: 1"
	case 3:
		as = "limited"
	case 4:
		names = []string{"nobody-1", "nobody-2", "nobody-3"}
		border = 1
	}
	list := func(names []string) string {
		return `{description: "` + strings.Join(names, `"}, {description: "`) + `"}`
	}
	p, err := policyfile.ReadYAML(fmt.Appendf(nil, "version: 1\ndescriptions: trusted\n"+w.Policy+"partitions:\n  - {name: red, pkey: 0x10%s, members: [{as: full, ports: [%s]}]}\n"+
		"  - {name: blue, pkey: 0x20, members: [{as: full, ports: [%s]}, {as: %s, ports: [%s]}]}\n",
		extra, list(names[:border]), list(names[border:len(names)-1]), as, list(names[len(names)-1:])), "policy.yaml")
	w.must(err)
	return p
}

// happens is one thing that happens, drawn by the seed.
func (w *walk) happens() string {
	w.Helper()
	switch n := w.rng.IntN(10); {
	case n < 3:
		return w.fabricChanges()
	case n < 5:
		return w.deviceChanges()
	case n < 6:
		n := w.rng.IntN(policies)
		for _, m := range w.managers {
			if w.rng.IntN(8) == 0 {
				m.FollowPolicy(w.policy(n))
			} else {
				m.SetPolicy(w.policy(n))
			}
		}
		return fmt.Sprint("policy ", n)
	default:
		i := w.rng.IntN(len(w.managers))
		switch w.rng.IntN(12) {
		case 0:
			was := w.managers[i]
			w.must(was.link.Close())
			w.managers[i] = w.seat(i, was.Assigned())
			return fmt.Sprintf("manager %d starts again", i)
		case 1, 2:
			w.managers[i].hung = true
			return fmt.Sprintf("manager %d hangs for a while", i)
		}
		if m := w.managers[i]; m.Held() && w.rng.IntN(2) == 0 {
			return w.carries(m)
		}
		return fmt.Sprintf("manager %d %s", i, w.asked(w.managers[i]))
	}
}

// fabricChanges is something that happens to cables.
func (w *walk) fabricChanges() string {
	w.Helper()
	if n := len(w.cut); n > 0 && w.rng.IntN(2) == 0 {
		c := w.cut[n-1]
		w.cut = w.cut[:n-1]
		w.must(w.fabric.Link(c[0].node, c[0].num, c[1].node, c[1].num))
		return fmt.Sprintf("a cable is back at %v port %d", c[0].node, c[0].num)
	}
	a := w.anyEnd()
	peer, at, ok := w.fabric.Peer(a.node, a.num)
	switch {
	case !ok:
		return fmt.Sprintf("no cable at %v port %d", a.node, a.num)
	case w.rng.IntN(4) == 0:
		w.must(w.fabric.Flap(a.node, a.num, time.Duration(w.rng.IntN(2000))*time.Millisecond))
		return fmt.Sprintf("the link of %v port %d flaps", a.node, a.num)
	}
	w.must(w.fabric.Unlink(a.node, a.num))
	w.cut = append(w.cut, [2]end{a, {peer, at}})
	return fmt.Sprintf("a cable is out at %v port %d", a.node, a.num)
}

// anyEnd is a port of a switch.
func (w *walk) anyEnd() end {
	for {
		n := w.list.Nodes[w.rng.IntN(len(w.list.Nodes))]
		if n.Type == ib.NodeSwitch {
			return end{n.GUID, ib.PortNum(1 + w.rng.IntN(len(n.Ports)-1))}
		}
	}
}

// deviceChanges is something that happens to a device.
func (w *walk) deviceChanges() string {
	w.Helper()
	n := w.list.Nodes[w.rng.IntN(len(w.list.Nodes))]
	for _, h := range w.hosts[:w.Managers] {
		if n == h {
			w.must(w.fabric.SetLoss(float64(w.rng.IntN(3)) / 100))
			return "packets are lost now and then, or no more"
		}
	}
	switch w.rng.IntN(6) {
	case 0:
		if w.off[n.GUID] = !w.off[n.GUID]; w.off[n.GUID] {
			w.must(w.fabric.PowerOff(n.GUID))
		} else {
			w.must(w.fabric.PowerOn(n.GUID))
		}
		return fmt.Sprintf("%v is off: %v", n.GUID, w.off[n.GUID])
	case 1:
		if !w.off[n.GUID] {
			w.must(w.fabric.Reboot(n.GUID))
		}
		return fmt.Sprintf("%v restarts", n.GUID)
	case 2:
		mute := w.rng.IntN(2) == 0
		w.must(w.fabric.SetFault(n.GUID, fabric.Fault{Mute: mute}))
		return fmt.Sprintf("%v is mute: %v", n.GUID, mute)
	case 3:
		w.must(w.fabric.SetFault(n.GUID, fabric.Fault{Alter: func(_ time.Duration, m *[mad.Size]byte) { m[64+w.rng.IntN(64)]++ }}))
		return fmt.Sprintf("%v lies", n.GUID)
	case 4:
		if n.Type == ib.NodeCA && !w.off[n.GUID] {
			w.must(w.fabric.SetDescription(n.GUID, fmt.Sprintf("%s again", n.Description)))
			return fmt.Sprintf("%v has another description", n.GUID)
		}
	}
	return w.overwrite(n.GUID)
}

// overwrite is a write by somebody else, who knows no key.
func (w *walk) overwrite(node ib.NodeGUID) string {
	if w.off[node] {
		return "nothing"
	}
	p := mad.SMP{BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: mad.MethodSet, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive}
	p.AttributeID = []mad.AttributeID{smp.AttrPKeyTable, smp.AttrLinearForwardingTable, smp.AttrMulticastForwardingTable, smp.AttrSLToVLMappingTable}[w.rng.IntN(4)]
	for i := range p.Data {
		p.Data[i] = byte(w.rng.IntN(3))
	}
	w.fabric.Agent(node).Handle(w.fabric.Now(), sma.Ingress{Port: 1}, &p)
	return fmt.Sprintf("somebody writes %v of %v", p.AttributeID, node)
}

// asked is what an administrator, or another part of the program, wants of a manager.
func (w *walk) asked(m *manager) string {
	host := w.hosts[w.rng.IntN(len(w.hosts))]
	guid := ib.PortGUID(host.GUID) + 1
	if g, ok := w.fabric.Agent(host.GUID).GUID(1, 0); ok {
		guid = ib.PortGUID(g)
	}
	switch w.rng.IntN(20) {
	case 0, 1:
		node, num, _ := w.fabric.Peer(host.GUID, 1)
		if at := (observed.Place{Node: node, Port: num}); w.rng.IntN(2) == 0 {
			return fmt.Sprint("fences ", at, ": ", m.Fence(at, "a person says so"))
		} else {
			m.Unfence(at, "a person says so")
			return fmt.Sprint("lifts the fence of ", at)
		}
	case 2:
		m.Reregister()
		return "has hosts register again"
	case 3:
		return fmt.Sprint("renews keys: ", m.RenewKeys(guid))
	case 4:
		return fmt.Sprint("renews all keys: ", m.RenewKeys())
	case 5:
		to, err := m.HandOver(0)
		return fmt.Sprint("hands over: ", to, err)
	case 6:
		to, err := m.HandOver(guid)
		return fmt.Sprint("hands over to one: ", to, err)
	case 7:
		m.AcceptPolicy()
		return "accepts the policy"
	case 8:
		m.SetPeriods(time.Duration(2+w.rng.IntN(10))*time.Second, time.Duration(20+w.rng.IntN(60))*time.Second, time.Duration(w.rng.IntN(3))*time.Second)
		return "has other periods"
	case 9, 10:
		return w.groups(m)
	case 11:
		if m.Held() {
			return w.carries(m)
		}
		return fmt.Sprint("is not held: ", m.Carry(nil), m.Reread(nil))
	case 12:
		return fmt.Sprint("abandons: ", m.Abandon())
	case 13:
		m.HoldBack("a test says so", w.rng.IntN(2) == 0)
		return "is held back"
	case 14:
		m.AskManagers()
		return "asks the others"
	case 15:
		m.AwaitConfirmation()
		return "awaits a confirmation"
	case 16:
		m.Confirm(w.rng.IntN(2) == 0)
		return "is confirmed"
	case 17:
		m.SetCables(m.Cables())
		return fmt.Sprint("has its list of cables again: ", m.Cables() != nil)
	default:
		var g mastership.Grant
		if w.rng.IntN(4) > 0 {
			g = mastership.Grant{Term: uint64(1 + w.rng.IntN(3)), Since: w.fabric.Now() - time.Second, Until: w.fabric.Now() + time.Minute}
		} else {
			g.Why = "a test says so"
		}
		m.SetLease(g)
		return fmt.Sprintf("has the lease %d", g.Term)
	}
}

// carries has a manager that is held carry out a policy, or read its tables again.
func (w *walk) carries(m *manager) string {
	next, err := m.Predict(w.policy(w.rng.IntN(policies)))
	switch {
	case err != nil:
		return fmt.Sprint("predicts: ", err)
	case w.rng.IntN(3) == 0:
		return fmt.Sprint("reads again what it would write: ", m.Reread(plan.Diff(m.Fabric(), next.Tables)))
	}
	return fmt.Sprint("carries out: ", m.Carry(next.Tables))
}

// groups gives a manager multicast groups, as hosts would have joined them.
func (w *walk) groups(m *manager) string {
	var list []group.Group
	ends := m.Fabric()
	if ends == nil {
		return "knows of no host that joins"
	}
	for k := range w.rng.IntN(4) {
		g := group.Group{MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(k)}, MLID: ib.LIDMulticastMin + ib.LID(k), Partition: 0x10, Settings: group.Settings{MTU: ib.MTU2048, Rate: 3}}
		for _, p := range ends.EndPorts() {
			if p.GUID != 0 && w.rng.IntN(2) == 0 {
				g.Members = append(g.Members, group.Member{Port: p.GUID, GID: ib.MakeGID(ib.DefaultGIDPrefix, p.GUID), State: sa.JoinFull})
			}
		}
		list = append(list, g)
	}
	m.SetGroups(list)
	return fmt.Sprintf("has %d groups, leads the second %v", len(list), m.Leads(ib.LIDMulticastMin+1))
}
