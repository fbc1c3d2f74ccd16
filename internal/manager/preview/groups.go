package preview

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// The changes of a multicast group.
const (
	GroupAdded   = "comes"
	GroupRemoved = "ends"
	GroupChanged = "changes"
	GroupShrinks = "loses members"
)

// GroupChange is the change of one multicast group.
type GroupChange struct {
	MGID      ib.GID `json:"mgid"`
	Partition string `json:"partition"`
	What      string `json:"what"`
	// Leave counts the members that have to leave.
	Leave int    `json:"leave"`
	Text  string `json:"text"`
}

// groups tells what changes in multicast groups, by MGID.
func (p *Preview) groups(in *Input) {
	p.Multicast = []GroupChange{}
	if in.Multicast == nil {
		return
	}
	names, members := map[ib.PKeyBase]string{}, map[ib.PKeyBase]map[ib.PortGUID]bool{}
	for _, x := range in.Partitions {
		names[x.Base] = x.Name
		members[x.Base] = map[ib.PortGUID]bool{}
		for _, g := range slices.Concat(x.Full, x.Limited) {
			members[x.Base][g] = true
		}
	}
	next := map[ib.GID]*group.Group{}
	for i := range in.Partitions {
		fixed := in.Partitions[i].Multicast
		for k := range fixed {
			next[fixed[k].MGID] = &fixed[k]
		}
	}
	for i := range in.Multicast.Groups {
		was := &in.Multicast.Groups[i]
		will := next[was.MGID]
		delete(next, was.MGID)
		p.groupChange(was, will, names, members[was.Partition])
	}
	for _, g := range next {
		p.Multicast = append(p.Multicast, GroupChange{
			MGID: g.MGID, Partition: nameOf(names, g.Partition), What: GroupAdded, Text: "is new: " + settings(g),
		})
	}
	slices.SortFunc(p.Multicast, func(a, b GroupChange) int { return bytes.Compare(a.MGID[:], b.MGID[:]) })
}

// groupChange compares a group with what the policy has of it, if anything.
func (p *Preview) groupChange(was, will *group.Group, names map[ib.PKeyBase]string, stay map[ib.PortGUID]bool) {
	c := GroupChange{MGID: was.MGID, Partition: nameOf(names, was.Partition)}
	moves := will != nil && will.Partition != was.Partition
	for _, m := range was.Members {
		if moves || !stay[m.Port] {
			c.Leave++
		}
	}
	left := len(was.Members) - c.Leave
	var text []string
	switch {
	case moves:
		c.What = GroupRemoved
		text = append(text, "ends, and is new in partition "+nameOf(names, will.Partition))
	case will == nil && left == 0 && (was.Fixed || c.Leave > 0):
		c.What = GroupRemoved
		text = append(text, "ends")
	case will == nil && was.Fixed:
		c.What = GroupChanged
		text = append(text, fmt.Sprintf("is no group of the policy any more; %d members keep it", left))
	case will != nil && will.Settings != was.Settings:
		c.What = GroupChanged
		text = append(text, settings(was)+" becomes "+settings(will))
	case c.Leave > 0:
		c.What = GroupShrinks
	default:
		return
	}
	if c.Leave > 0 {
		text = append(text, fmt.Sprintf("%d of %d members leave", c.Leave, len(was.Members)))
	}
	c.Text = strings.Join(text, "; ")
	p.Multicast = append(p.Multicast, c)
}

func nameOf(names map[ib.PKeyBase]string, base ib.PKeyBase) string {
	if name, ok := names[base]; ok {
		return name
	}
	return base.String()
}

func settings(g *group.Group) string {
	return fmt.Sprintf("MTU %s, rate %s, SL %d, Q_Key %s", g.MTU, g.Rate, g.SL, g.QKey)
}
