package desired

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// web is the switches of a subnet, by node GUID, and the cables between them
// that are trained at both ends.
type web struct {
	switches []*observed.Node
	place    map[*observed.Node]int32 // in switches
	cables   []cable
	ways     [][]int32 // for each switch its cables, by port number
}

// cable joins the switches a and b, by their places.
type cable struct {
	a, b         int32
	portA, portB ib.PortNum
	mtu          ib.MTU // the largest that both ends take, 0 when they do not say
}

// other is the switch at the other end of c, with the ports at from's end and
// at the other.
func (c *cable) other(from int32) (to int32, near, far ib.PortNum) {
	if c.a == from {
		return c.b, c.portA, c.portB
	}
	return c.a, c.portB, c.portA
}

func newWeb(f *observed.Fabric, idle map[*observed.Port]bool) *web {
	w := &web{switches: f.Switches()}
	slices.SortFunc(w.switches, func(a, b *observed.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	w.place = make(map[*observed.Node]int32, len(w.switches))
	for i, n := range w.switches {
		w.place[n] = int32(i)
	}
	w.ways = make([][]int32, len(w.switches))
	for i, n := range w.switches {
		for num := 1; num < len(n.Ports); num++ {
			p := &n.Ports[num]
			if !p.IsTrained() || idle[p] {
				continue
			}
			to, ok := w.place[p.Peer.Node]
			// A cable is found from its first end; one that leads back into
			// its own switch serves no tree.
			if !ok || to <= int32(i) {
				continue
			}
			w.cables = append(w.cables, cable{
				a: int32(i), b: to, portA: p.Num, portB: p.Peer.Num, mtu: min(p.Info.MTUCap, p.Peer.Info.MTUCap),
			})
		}
	}
	for i := range w.cables {
		c := &w.cables[i]
		w.ways[c.a] = append(w.ways[c.a], int32(i))
		w.ways[c.b] = append(w.ways[c.b], int32(i))
	}
	for s := range w.ways {
		slices.SortFunc(w.ways[s], func(x, y int32) int {
			_, nearX, _ := w.cables[x].other(int32(s))
			_, nearY, _ := w.cables[y].other(int32(s))
			return cmp.Compare(nearX, nearY)
		})
	}
	return w
}

// seat is where an end port sits: a switch, and its port towards the end port,
// 0 when it is the switch itself.
type seat struct {
	at   int32
	port ib.PortNum
}

func (w *web) seatOf(p *observed.Port) (s seat, ok bool) {
	if p.Node.Switch != nil {
		return seat{w.place[p.Node], 0}, true
	}
	if !p.IsTrained() || p.Peer.Node.Switch == nil {
		return seat{}, false
	}
	return seat{w.place[p.Peer.Node], p.Peer.Num}, true
}
