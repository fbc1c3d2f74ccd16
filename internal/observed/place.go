package observed

import (
	"cmp"

	"github.com/ibwarden/ibwarden/ib"
)

// Place is a port of a device, by what stays the same from sweep to sweep.
type Place struct {
	Node ib.NodeGUID
	Port ib.PortNum
}

// Compare orders places by node GUID and port number.
func (a Place) Compare(b Place) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
}

// Place is where p is.
func (p *Port) Place() Place { return Place{p.Node.GUID(), p.Num} }

// At is the port at a place, nil when the sweep did not find its node.
func (f *Fabric) At(at Place) *Port {
	if n := f.Node(at.Node); n != nil {
		return n.Port(at.Port)
	}
	return nil
}
