package observed

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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

// String is the node GUID, a colon and the port number, as state files and the book of
// keys have it; ParsePlace reads it.
func (a Place) String() string { return fmt.Sprintf("%v:%d", a.Node, a.Port) }

// ParsePlace reads what String prints.
func ParsePlace(text string) (Place, error) {
	node, port, _ := strings.Cut(text, ":")
	guid, err := ib.ParseNodeGUID(node)
	n, bad := strconv.ParseUint(port, 10, 8)
	if err != nil || bad != nil {
		return Place{}, fmt.Errorf("place %q: want a node GUID, a colon and a port number", text)
	}
	return Place{guid, ib.PortNum(n)}, nil
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
