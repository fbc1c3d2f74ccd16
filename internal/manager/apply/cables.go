package apply

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// ErrRecabled means that a link leads to a port other than discovery found: what was
// written through it was meant for another device.
var ErrRecabled = errors.New("link left inactive: it leads elsewhere than discovery found")

// cable is a link that is to become Active, asked about from one of its ends.
type cable struct{ from, to *observed.Port }

// cables lists the links of ops, each once.
func (r *Run) cables(ops []plan.Op) []cable {
	var out []cable
	seen := make(map[*observed.Port]bool)
	for _, op := range ops {
		p := op.Port
		if op.Kind != plan.Activate || p.Peer == nil || seen[p] {
			continue
		}
		seen[p], seen[p.Peer] = true, true
		c := cable{p, p.Peer}
		// A directed route goes on through switches, and begins at the
		// manager's own port.
		if c.from.Node.Switch == nil && len(c.from.Path) > 0 || c.to.Node.Switch == nil && len(c.to.Path) == 0 {
			c.from, c.to = c.to, c.from
		}
		out = append(out, c)
	}
	return out
}

// check asks who is at the other end of the next link. From then on the link
// has to stay up, or it does not go from Armed to Active.
func (r *Run) check() {
	if len(r.links) == 0 {
		return
	}
	c := r.links[0]
	r.links = r.links[1:]
	r.window.Do(transact.Request{
		Path: append(slices.Clone(c.from.Path), c.from.Num), Respond: c.to.RespTime(), MKey: c.from.MKeyOver(),
		Method: mad.MethodGet, Attribute: smp.AttrNodeInfo,
	}, func(reply transact.Reply) {
		if err := c.judge(reply); err != nil {
			r.strange[c.from], r.strange[c.to] = err, err
		}
		r.check()
	})
}

// judge compares who answered with who should.
func (c *cable) judge(reply transact.Reply) error {
	var info smp.NodeInfo
	err := reply.Err
	if err == nil {
		err = info.UnmarshalBinary(reply.SMP.Data[:])
	}
	if err != nil {
		return fmt.Errorf("link left inactive: who is behind %s could not be asked again: %w", c.from, err)
	}
	n := &c.to.Node.Info
	same := info.NodeGUID == n.NodeGUID && info.NodeType == n.NodeType && info.NumPorts == n.NumPorts && info.PartitionCap == n.PartitionCap
	if same && info.LocalPortNum == c.to.Num && (c.to.Node.Switch != nil || info.PortGUID == c.to.GUID) {
		return nil
	}
	return fmt.Errorf("%w: behind %s is now %s %s port %d of %d, it was %s", ErrRecabled, c.from, info.NodeType, info.NodeGUID, info.LocalPortNum, info.NumPorts, c.to)
}
