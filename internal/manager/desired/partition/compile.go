package partition

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// compiler holds what one call of Compile works on.
type compiler struct {
	in    Input
	ports []PortFacts // sorted
	// keys are those that each port should hold, in OpenSM's order.
	keys     [][]wantedKey
	faults   Error
	fenced   []Overflow
	warnings []string
}

// wantedKey is a key that a port should hold.
type wantedKey struct {
	ib.PKey
	// partition is the index of its partition in the resolution, -1 for the
	// default key of a port that the resolution does not know.
	partition int
	// order is the place of its partition in the policy.
	order  int
	index0 bool
}

// collectKeys fills in keys from the partitions.
func (c *compiler) collectKeys() {
	c.keys = make([][]wantedKey, len(c.ports))
	owner := make(map[ib.PortGUID]int, len(c.ports))
	for i, port := range c.ports {
		if i > 0 && port.PortGUID == c.ports[i-1].PortGUID {
			first := c.ports[i-1]
			consequence := "both are limited to the default partition"
			switch kept, owned := owner[port.PortGUID]; {
			case port.Manager || owned && c.ports[kept].Manager:
				consequence = "the manager's own port keeps its keys, the other gets what an unknown port gets"
			case c.in.Resolution.NoDefault:
				consequence = "neither gets a key"
			}
			c.warnings = append(c.warnings, fmt.Sprintf("port GUID %v is claimed by node %v port %d and node %v port %d: %s",
				port.PortGUID, first.NodeGUID, first.PortNum, port.NodeGUID, port.PortNum, consequence))
			if kept, owned := owner[port.PortGUID]; port.Manager {
				owner[port.PortGUID] = i
			} else if owned && !c.ports[kept].Manager {
				delete(owner, port.PortGUID)
			}
			continue
		}
		owner[port.PortGUID] = i
	}
	partitions := c.in.Resolution.Partitions
	order := make([]int, len(partitions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rank(partitions[a].Base), rank(partitions[b].Base)) })
	for _, n := range order {
		part := &partitions[n]
		// Limited before full: a port in both gets both keys in this order, or
		// only the full one.
		c.addKeys(owner, n, part.Limited, part.Base.Limited())
		c.addKeys(owner, n, part.Full, part.Base.Full())
		for _, guid := range part.Index0 {
			if i, ok := owner[guid]; ok {
				c.claimIndex0(i, part.Base)
			}
		}
	}
	for i := range c.keys {
		if c.in.Resolution.NoDefault {
			break
		}
		if !slices.ContainsFunc(c.keys[i], func(k wantedKey) bool { return k.Base() == ib.PKeyBaseDefault }) {
			c.keys[i] = append(c.keys[i], wantedKey{PKey: ib.PKeyDefaultLimited, partition: -1})
		}
	}
}

// rank orders partitions as OpenSM goes through them on the usual hosts: by
// the number with its bytes swapped.
func rank(b ib.PKeyBase) uint16 { return bits.ReverseBytes16(uint16(b)) }

func (c *compiler) addKeys(owner map[ib.PortGUID]int, partition int, ports []ib.PortGUID, key ib.PKey) {
	for _, guid := range ports {
		i, ok := owner[guid]
		if !ok {
			continue
		}
		keys := c.keys[i]
		if last := len(keys) - 1; last >= 0 && keys[last].partition == partition && !c.in.Resolution.AllowBoth {
			keys[last].PKey = key
			continue
		}
		c.keys[i] = append(keys, wantedKey{PKey: key, partition: partition, order: c.in.Resolution.Partitions[partition].Order})
	}
}

// claimIndex0 marks the key just added to the i-th port: the full one, if the
// port has both of its partition.
func (c *compiler) claimIndex0(i int, base ib.PKeyBase) {
	if keys := c.keys[i]; len(keys) > 0 && keys[len(keys)-1].Base() == base {
		keys[len(keys)-1].index0 = true
	}
}

// fit gives the keys that go into the port's table: all of them, or of a port
// that is fenced the default one, if there is one. It notes why they cannot, if so.
func (c *compiler) fit(port *PortFacts, keys []wantedKey) ([]wantedKey, bool) {
	var claims []string
	for _, k := range keys {
		if k.index0 {
			claims = append(claims, c.partitionName(k))
		}
	}
	if len(claims) > 1 {
		c.faults.Index0 = append(c.faults.Index0, Index0Conflict{port.PortGUID, port.NodeGUID, port.PortNum, claims})
	}
	guard := c.tooManyForGuard(port, keys)
	switch {
	case len(keys) <= port.Cap && !guard:
		return keys, len(claims) <= 1
	case port.Cap <= 0 && len(keys) == 1:
		c.warnings = append(c.warnings, fmt.Sprintf("port %v (node %v port %d) reports a P_Key table of no entries: it cannot hold even the default key",
			port.PortGUID, port.NodeGUID, port.PortNum))
		return keys, true
	}
	o := Overflow{
		PortGUID: port.PortGUID, NodeGUID: port.NodeGUID, PortNum: port.PortNum, Cap: port.Cap, Needed: len(keys),
		Manager: c.in.Resolution.NoDefault && port.Manager,
	}
	if guard {
		o.Cap, o.Guard = port.Facing.Cap, fmt.Sprintf("switch %v port %d", port.Facing.SwitchGUID, port.Facing.PortNum)
	}
	for _, k := range keys {
		o.Partitions = append(o.Partitions, c.partitionName(k))
	}
	if c.in.Fence != nil && c.in.Fence(port.PortGUID) {
		c.fenced = append(c.fenced, o)
		if c.in.Resolution.NoDefault {
			return nil, len(claims) <= 1
		}
		return []wantedKey{{PKey: ib.PKeyDefaultLimited, partition: -1}}, len(claims) <= 1
	}
	c.faults.Overflows = append(c.faults.Overflows, o)
	return nil, false
}

// tooManyForGuard reports whether the switch port before a port can check keys
// and has no room for these, where there is no default partition: then nothing
// would hold the port to its partitions. The manager's own port is trusted.
func (c *compiler) tooManyForGuard(port *PortFacts, keys []wantedKey) bool {
	f := port.Facing
	if !c.in.Resolution.NoDefault || f == nil || f.Cap <= 0 || !f.InboundCap || !f.OutboundCap || port.Manager {
		return false
	}
	bases := map[ib.PKeyBase]bool{}
	for _, k := range keys {
		bases[k.Base()] = true
	}
	return len(bases) > f.Cap
}

func (c *compiler) partitionName(k wantedKey) string {
	name := policy.DefaultName
	if k.partition >= 0 {
		name = c.in.Resolution.Partitions[k.partition].Name
	}
	return fmt.Sprintf("%s (%v)", name, k.PKey)
}
