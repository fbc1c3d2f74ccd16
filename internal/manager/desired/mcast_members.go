package desired

import "github.com/ibwarden/ibwarden/ib"

// PartitionMembers says which ports may be in which partition, full or limited.
type PartitionMembers map[ib.PKeyBase]map[ib.PortGUID]bool

// Add adds ports to the members of a partition.
func (m PartitionMembers) Add(base ib.PKeyBase, lists ...[]ib.PortGUID) {
	size := 0
	for _, l := range lists {
		size += len(l)
	}
	in := m[base]
	if in == nil {
		in = make(map[ib.PortGUID]bool, size)
		m[base] = in
	}
	for _, l := range lists {
		for _, g := range l {
			in[g] = true
		}
	}
}

// Allow reports whether a port may be in a partition; it serves as MulticastInput.Allowed.
func (m PartitionMembers) Allow(base ib.PKeyBase, port ib.PortGUID) bool { return m[base][port] }
