package partition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Error refuses a policy that does not fit the fabric, with every port that is
// in the way, sorted as EndPorts are.
type Error struct {
	Overflows []Overflow
	Index0    []Index0Conflict
}

// Error prints one line per port.
func (e *Error) Error() string {
	var lines []string
	for _, o := range e.Overflows {
		lines = append(lines, o.String())
	}
	for _, x := range e.Index0 {
		lines = append(lines, x.String())
	}
	return strings.Join(lines, "\n")
}

// Overflow is a port that should hold more keys than it has room for.
type Overflow struct {
	PortGUID ib.PortGUID
	NodeGUID ib.NodeGUID
	PortNum  ib.PortNum
	// Cap is the size of the port's table, Needed what the policy asks for,
	// both in keys.
	Cap, Needed int
	// Partitions are those that the port should be in, with the key of each.
	Partitions []string
	// Manager reports whether it is the manager's port, and that there is no default
	// partition: it has to be in every partition that has a member.
	Manager bool
	// Guard is the switch port before the port, for messages, when it is that one's
	// table that has no room; Cap is then its size.
	Guard string
}

// namesMax is how many partitions a message names.
const namesMax = 16

// String tells the port, its size, what would fit and what was asked.
func (o Overflow) String() string {
	names := strings.Join(o.Partitions[:min(len(o.Partitions), namesMax)], ", ")
	if more := len(o.Partitions) - namesMax; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if o.Manager {
		return fmt.Sprintf("the manager's port %v (node %v port %d): without a default partition it is in every partition, and its P_Key table holds %d; the policy has %d: "+
			"take %d of them out (%s), or run the manager at a port with a larger table", o.PortGUID, o.NodeGUID, o.PortNum, o.Cap, o.Needed, o.Needed-o.Cap, names)
	}
	if o.Guard != "" {
		return fmt.Sprintf("port %v (node %v port %d): the P_Key table of %s before it holds %d keys, the policy needs %d: take the port out of %d of %s",
			o.PortGUID, o.NodeGUID, o.PortNum, o.Guard, o.Cap, o.Needed, o.Needed-o.Cap, names)
	}
	return fmt.Sprintf("port %v (node %v port %d): the P_Key table holds %d keys, the policy needs %d: take the port out of %d of %s",
		o.PortGUID, o.NodeGUID, o.PortNum, o.Cap, o.Needed, o.Needed-o.Cap, names)
}

// Index0Conflict is a port whose index 0 several partitions claim.
type Index0Conflict struct {
	PortGUID ib.PortGUID
	NodeGUID ib.NodeGUID
	PortNum  ib.PortNum
	// Partitions are those with the claim, with the key of each.
	Partitions []string
}

// VetIndex0 finds the ports whose index 0 several partitions of a policy claim, which no
// table has to be read for. The error, if there is one, is an *Error.
func VetIndex0(r *policy.Resolution) error {
	claims := make(map[ib.PortGUID][]string)
	var faults Error
	for _, p := range r.Partitions {
		for _, guid := range p.Index0 {
			key := p.Base.Limited()
			if slices.Contains(p.Full, guid) {
				key = p.Base.Full()
			}
			claims[guid] = append(claims[guid], fmt.Sprintf("%s (%v)", p.Name, key))
		}
	}
	for _, guid := range slices.Sorted(maps.Keys(claims)) {
		if len(claims[guid]) > 1 {
			faults.Index0 = append(faults.Index0, Index0Conflict{PortGUID: guid, Partitions: claims[guid]})
		}
	}
	if len(faults.Index0) == 0 {
		return nil
	}
	return &faults
}

// String tells the port, the node where it is known, and the partitions.
func (x Index0Conflict) String() string {
	if x.NodeGUID == 0 {
		return fmt.Sprintf("port %v: index 0 is claimed by %s: only one of them can have it", x.PortGUID, strings.Join(x.Partitions, " and by "))
	}
	return fmt.Sprintf("port %v (node %v port %d): index 0 is claimed by %s: only one of them can have it",
		x.PortGUID, x.NodeGUID, x.PortNum, strings.Join(x.Partitions, " and by "))
}
