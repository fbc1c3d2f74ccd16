package isolation

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// sight is one thing that switches say of multicast packets.
type sight struct {
	what sightKind
	mlid ib.LID
	// exit is the port that it is said of, peer the one at the other end of its cable.
	exit, peer *observed.Port
	// end is the GUID of the end port that packets get to.
	end ib.PortGUID
}

type sightKind uint8

const (
	sightEnd    sightKind = iota // packets get to an end port: the switch itself, or the peer
	sightSwitch                  // packets go to another switch
	sightNobody                  // packets leave to a device that was not read
	sightDown                    // the link is down
	sightDefault
	sightNoInfo
	sightNoBlock
)

// The reasons of the sights that speak against a proof.
var sightReasons = map[sightKind]string{
	sightNobody:  "multicast packets leave to a device that was not read",
	sightDefault: "packets of any group that the table does not know leave by a default port to an end port",
	sightNoInfo:  "SwitchInfo or PortInfo" + unread,
	sightNoBlock: "a block of the multicast forwarding table" + unread,
}

// sights calls yield with all that switches say of multicast packets, until it returns
// false. Nothing else of a fabric counts for where these go.
func sights(f *observed.Fabric, yield func(sight) bool) {
	for _, n := range f.Nodes {
		if n.Switch != nil && !sightsOf(n, yield) {
			return
		}
	}
}

// sightsOf is what one switch says.
func sightsOf(n *observed.Node, yield func(sight) bool) bool {
	if !n.Switch.InfoRead || !n.Ports[0].InfoRead {
		return yield(sight{what: sightNoInfo, exit: &n.Ports[0]})
	}
	info := &n.Switch.Info
	for _, num := range []ib.PortNum{info.DefaultMulticastPrimaryPort, info.DefaultMulticastNotPrimaryPort} {
		if x := (sight{what: sightDefault}); n.LeadsSomewhere(num) {
			x.exit = &n.Ports[num]
			if num != 0 && (x.exit.Peer == nil || x.exit.Peer.Node.Switch != nil) {
				continue // the next switch decides
			}
			if !yield(x) {
				return false
			}
		}
	}
	for block := range n.MFTBlocks() {
		for position := range n.MFTPositions() {
			t, ok := n.Switch.MFT[smp.MFTModifier(uint16(block), uint8(position))]
			if !ok && !yield(sight{what: sightNoBlock, exit: &n.Ports[0]}) {
				return false
			}
			for i, mask := range t.Masks {
				mlid := ib.LIDMulticastMin + ib.LID(block*smp.MLIDsPerBlock+i)
				for bit := 0; mask>>bit != 0; bit++ {
					num := position*smp.PortsPerPosition + bit
					if mask>>bit&1 != 0 && num < len(n.Ports) && !yield(sightAt(mlid, &n.Ports[num])) {
						return false
					}
				}
			}
		}
	}
	return true
}

// sightAt is what becomes of packets for a multicast LID that leave by a port.
func sightAt(mlid ib.LID, exit *observed.Port) sight {
	x := sight{mlid: mlid, exit: exit, peer: exit.Peer}
	switch {
	case exit.Num == 0:
		x.what, x.end = sightEnd, exit.GUID
	case x.peer == nil && exit.IsUp():
		x.what = sightNobody
	case x.peer == nil:
		x.what = sightDown
	case x.peer.Node.Switch != nil:
		x.what = sightSwitch
	default:
		x.what, x.end = sightEnd, x.peer.GUID
	}
	return x
}

// reading is what switches were read to do with multicast packets.
type reading struct {
	sights []sight
	// leads are by multicast LID, mlids these in order, led the multicast LIDs that
	// lead to an end port.
	leads map[ib.LID]*lead
	mlids []ib.LID
	led   map[ib.PortGUID][]ib.LID
}

// lead is where tables lead packets of one multicast LID.
type lead struct {
	ends []ib.PortGUID // sorted
	// first is the first switch of those that its cables join; circle tells
	// that they join two in two ways.
	first  map[*observed.Node]*observed.Node
	cables map[[2]*observed.Port]bool
	circle bool
}

func (l *lead) root(n *observed.Node) *observed.Node {
	for l.first[n] != nil {
		n = l.first[n]
	}
	return n
}

// join notes a cable between switches, once.
func (l *lead) join(a, b *observed.Port) {
	if l.cables[[2]*observed.Port{b, a}] {
		return
	}
	l.cables[[2]*observed.Port{a, b}] = true
	from, to := l.root(a.Node), l.root(b.Node)
	if from == to {
		l.circle = true
		return
	}
	l.first[from] = to
}

// reads reports whether switches still say the same.
func (r *reading) reads(f *observed.Fabric) bool {
	if r.leads == nil {
		return false
	}
	at, same := 0, true
	sights(f, func(x sight) bool {
		same = at < len(r.sights) && r.sights[at] == x
		at++
		return same
	})
	return same && at == len(r.sights)
}

// read is what switches say.
func read(f *observed.Fabric) reading {
	r := reading{leads: make(map[ib.LID]*lead), led: make(map[ib.PortGUID][]ib.LID)}
	sights(f, func(x sight) bool {
		r.sights = append(r.sights, x)
		if x.mlid == 0 {
			return true
		}
		l := r.leads[x.mlid]
		if l == nil {
			l = &lead{first: make(map[*observed.Node]*observed.Node), cables: make(map[[2]*observed.Port]bool)}
			r.leads[x.mlid] = l
		}
		switch x.what {
		case sightEnd:
			l.ends = append(l.ends, x.end)
		case sightSwitch:
			l.join(x.exit, x.peer)
		}
		return true
	})
	r.mlids = slices.Sorted(maps.Keys(r.leads))
	for _, mlid := range r.mlids {
		l := r.leads[mlid]
		l.first, l.cables = nil, nil // of no more use
		slices.Sort(l.ends)
		for i, g := range l.ends {
			if i == 0 || g != l.ends[i-1] {
				r.led[g] = append(r.led[g], mlid)
			}
		}
	}
	return r
}
