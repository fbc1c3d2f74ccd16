package sweep

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// ErrUndeclared says that a device is not what the list of cables has at its
// place.
var ErrUndeclared = errors.New("not on the cable list")

// declared holds what answered behind from against the list of cables, if there
// is one.
//
// The manager's own cable needs no list: nobody else can answer a packet of one
// hop. So a manager that was moved still finds the subnet, as long as what it is
// cabled to now is a listed device.
func (d *Discovery) declared(from *observed.Port, info *smp.NodeInfo) error {
	list := d.options.Cables
	if list == nil {
		return nil
	}
	if from == nil {
		if err := list.CheckOwn(info); err != nil {
			return fmt.Errorf("%w: the manager's own node: %w", ErrUndeclared, err)
		}
		return nil
	}
	err := list.Check(from.Place(), info)
	if err == nil {
		if far := d.farEnd(info); far != nil && far.Stranger != nil {
			err = fmt.Errorf("%s leads back to %w", far, far.Stranger.Why)
		}
	} else if from == d.fabric.Self && list.CheckDevice(info) == nil {
		d.fault(from, fmt.Errorf("the manager's own cable: %w: %w", ErrUndeclared, err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUndeclared, err)
	}
	return nil
}

// unsaid is what err means when a device behind from did not say who it is: with a
// list of cables it is not what is listed there, unless it may be, and hang.
func (d *Discovery) unsaid(from *observed.Port, err error) error {
	if from == nil || d.options.Cables == nil {
		return err
	}
	_, listed := d.options.Cables.Peer(from.Place())
	switch {
	case !errors.Is(err, transact.ErrNoAnswer):
		return fmt.Errorf("%w: %w", ErrUndeclared, err)
	case !listed && from != d.fabric.Self:
		return fmt.Errorf("%w: nothing is listed there, found something that does not say who it is: %w", ErrUndeclared, err)
	}
	return err
}

// farEnd is the port through which a device answered, if it is known already.
func (d *Discovery) farEnd(info *smp.NodeInfo) *observed.Port {
	if n := d.fabric.Node(info.NodeGUID); n != nil {
		return n.Port(info.LocalPortNum)
	}
	return nil
}

// Contradiction says why the cable at p cannot be trusted, in words,
// once Advance has reported true. It is empty if nothing contradicts the cable, or
// without Options.Verify.
func (d *Discovery) Contradiction(p *observed.Port) string { return d.contradictions[p] }

func (d *Discovery) contradict(p *observed.Port, reason string) {
	if d.contradictions[p] == "" {
		d.contradictions[p] = reason
	}
}

// verify asks over every cable between switches from the end from which nobody has asked yet. A device
// that is no switch cannot forward packets, so such a cable is genuine if the devices at both its
// ends answer through it.
func (d *Discovery) verify() {
	d.noteCables()
	for _, n := range d.fabric.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && n.Switch != nil && p.Peer.Node.Switch != nil && !d.over[p] {
				d.askAgain(append(append(mad.Path{}, p.Path...), p.Num), p.MKeyOver(), func(found *smp.NodeInfo, err error) { d.confirm(p, found, err) })
			}
		}
	}
}

func (d *Discovery) askAgain(path mad.Path, key ib.MKey, then func(*smp.NodeInfo, error)) {
	if len(path) > mad.MaxHops {
		then(nil, fmt.Errorf("more than %d hops from the manager", mad.MaxHops))
		return
	}
	d.get(path, key, observed.RespTimeAssumed.Duration(), smp.AttrNodeInfo, 0, func(r transact.Reply) {
		var info smp.NodeInfo
		err := r.Err
		if err == nil {
			err = info.UnmarshalBinary(r.SMP.Data[:])
		}
		then(&info, err)
	})
}

// confirm holds what answers behind a switch port against the cable that is
// thought to be there.
func (d *Discovery) confirm(p *observed.Port, found *smp.NodeInfo, err error) {
	reason := ""
	far := p.Peer.Node
	switch {
	case err != nil:
		reason = fmt.Sprintf("%s does not lead to %s: %v", p, p.Peer, err)
	case found.NodeGUID != far.GUID() || found.LocalPortNum != p.Peer.Num:
		reason = fmt.Sprintf("%s does not lead to %s, but to port %d of %v", p, p.Peer, found.LocalPortNum, found.NodeGUID)
	default:
		reason = d.otherwise(far, found)
	}
	if reason == "" {
		return
	}
	d.fault(p, errors.New(reason))
	d.contradict(p, reason)
}

// noteOver notes, for verify, that a switch answered over the cable from one of its ports to another's.
func (d *Discovery) noteOver(from, to *observed.Port, found *smp.NodeInfo) {
	if !d.options.Verify || from.Node.Switch == nil || to.Node.Switch == nil {
		return
	}
	d.over[from] = true
	if reason := d.otherwise(to.Node, found); reason != "" {
		d.fault(to, errors.New(reason))
	}
}

// otherwise says how a switch that answers over another cable differs from what it first said, which
// contradicts all of its cables; "" for not at all.
func (d *Discovery) otherwise(n *observed.Node, found *smp.NodeInfo) string {
	was := &n.Info
	if found.NodeType == was.NodeType && found.NumPorts == was.NumPorts && found.PartitionCap == was.PartitionCap && found.PortGUID == n.Ports[0].GUID {
		return ""
	}
	reason := fmt.Sprintf("it first said that it is %s %v of %d ports and %d P_Keys, then %s %v of %d ports and %d P_Keys",
		was.NodeType, n.Ports[0].GUID, was.NumPorts, was.PartitionCap, found.NodeType, found.PortGUID, found.NumPorts, found.PartitionCap)
	for i := range n.Ports {
		d.contradict(&n.Ports[i], reason)
	}
	return reason
}
