package daemon

import (
	"iter"
	"sync"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// sizes are those of the P_Key tables of end ports.
type sizes struct {
	mu    sync.Mutex
	sizes map[ib.PortGUID]int
	list  []portSize // the same in order, for the goroutine of Run
}

func (s *sizes) of(g ib.PortGUID) (keys int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, known = s.sizes[g]
	return keys, known
}

// read notes how large they are, when ports have come or gone. It is called after every pass, and there are thousands of ports: those that are
// as they were are passed over in their order.
func (s *sizes) read(f *observed.Fabric) {
	known, same := s.list, true
	for p := range endPorts(f) {
		size := portSize{p.GUID, p.PKeyCap()}
		if same = len(known) > 0 && known[0] == size; !same {
			break
		}
		known = known[1:]
	}
	if same && len(known) == 0 {
		return
	}
	s.list = s.list[:0]
	sizes := make(map[ib.PortGUID]int, cap(s.list))
	for p := range endPorts(f) {
		s.list = append(s.list, portSize{p.GUID, p.PKeyCap()})
		sizes[p.GUID] = p.PKeyCap()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = sizes
}

// portSize is how many keys the table of a port has room for.
type portSize struct {
	port ib.PortGUID
	keys int
}

// endPorts are the end ports that were reached, in the order of their nodes.
func endPorts(f *observed.Fabric) iter.Seq[*observed.Port] {
	return func(yield func(*observed.Port) bool) {
		for _, n := range f.Nodes {
			ports := n.Ports[1:]
			if n.Switch != nil {
				ports = n.Ports[:1]
			}
			for i := range ports {
				if p := &ports[i]; p.Reached && !yield(p) {
					return
				}
			}
		}
	}
}
