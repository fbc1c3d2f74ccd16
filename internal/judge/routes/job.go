package routes

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Job is the work of one judgement, which can be divided into parts.
type Job struct {
	in       *Input
	switches []*observed.Node
	number   []int32 // by Node.Index: the place in switches, -1 for what is no switch
	island   []int32 // by switch: equal where cables connect them
	islands  int

	// A link is one direction of a cable between switches. Those of switch s are
	// firstLink[s] to firstLink[s+1]-1, by exit port; its slots are their numbers less
	// firstLink[s].
	firstLink []int32
	links     []link
	exit      []ib.PortNum // of a link
	entry     []ib.PortNum // the port at its other end
	slots     [][]uint8    // by switch and exit port: the slot, noSlot for what is no link
	degree    int          // the most slots of a switch; the slot degree is that of no link
	hops      []hop        // by switch, stride degree+1, and slot
	words     int          // of 64 slots each

	ends    []sender
	at      [][]int32 // by switch: its senders
	hosts   []int32   // by switch: CA and router ports among them
	port0   []bool    // by switch: whether port 0 is among them
	dests   []dest    // by LID
	weights weights

	lanes
}

// link is one direction of a cable between two switches.
type link struct {
	out *observed.Port
	to  int32
}

// hop is where a packet gets by a slot of a switch: over a link to a switch; of no link to
// the switch with number len(switches), over the link with number len(links).
type hop struct{ next, link int32 }

const noSlot = 255

// none is the hop of no link.
func (j *Job) none() hop { return hop{int32(len(j.switches)), int32(len(j.links))} }

// sender is an end port that has a LID.
type sender struct {
	port *observed.Port
	at   int32      // the switch that its packets enter first, -1 for none
	exit ib.PortNum // of that switch towards it; 0 for port 0
}

// dest is a LID of a sender.
type dest struct {
	lid ib.LID
	end int32 // place in ends
}

// Prepare reads an Input. The work is done by Parts of the Job, which look at different
// blocks of LIDs, and Result puts what they found together.
func Prepare(in *Input) *Job {
	j := &Job{in: in, switches: in.Fabric.Switches()}
	j.number = make([]int32, len(in.Fabric.Nodes))
	for i := range j.number {
		j.number[i] = -1
	}
	for i, n := range j.switches {
		j.number[n.Index] = int32(i)
	}
	j.connect()
	j.attach()
	j.separate()
	j.mapLevels()
	return j
}

// connect numbers the links between switches that are trained at both ends.
func (j *Job) connect() {
	j.firstLink = make([]int32, 1, len(j.switches)+1)
	j.slots = make([][]uint8, len(j.switches))
	for s, n := range j.switches {
		slots := make([]uint8, 256)
		for i := range slots {
			slots[i] = noSlot
		}
		slot := uint8(0)
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.IsTrained() && p.Peer.Node.Switch != nil && p.Peer.Num != 0 {
				j.links = append(j.links, link{p, j.number[p.Peer.Node.Index]})
				j.exit, j.entry = append(j.exit, p.Num), append(j.entry, p.Peer.Num)
				slots[i] = slot
				slot++
			}
		}
		j.slots[s], j.degree = slots, max(j.degree, int(slot))
		j.firstLink = append(j.firstLink, int32(len(j.links)))
	}
	j.words = (j.degree + 63) / 64
	j.hops = slices.Repeat([]hop{j.none()}, (len(j.switches)+1)*(j.degree+1))
	for s := range j.switches {
		for i, l := range j.links[j.firstLink[s]:j.firstLink[s+1]] {
			j.hops[s*(j.degree+1)+i] = hop{l.to, j.firstLink[s] + int32(i)}
		}
		for i, slot := range j.slots[s] {
			if slot == noSlot {
				j.slots[s][i] = uint8(j.degree)
			}
		}
	}
}

// attach enters the end ports, each once, and their LIDs.
func (j *Job) attach() {
	j.at, j.hosts, j.port0 = make([][]int32, len(j.switches)), make([]int32, len(j.switches)), make([]bool, len(j.switches))
	place := make(map[*observed.Port]int32, len(j.in.Ends))
	for _, e := range j.in.Ends {
		i, known := place[e.Port]
		if !known {
			i = int32(len(j.ends))
			place[e.Port] = i
			j.ends = append(j.ends, j.sender(e.Port))
		}
		for lid := int(e.LID); lid <= int(e.last()); lid++ {
			j.dests = append(j.dests, dest{ib.LID(lid), i})
		}
	}
	slices.SortStableFunc(j.dests, func(a, b dest) int { return cmp.Compare(a.lid, b.lid) })
	for i, e := range j.ends {
		if e.at < 0 {
			continue
		}
		j.at[e.at] = append(j.at[e.at], int32(i))
		if e.port.Num == 0 && e.port.Node.Switch != nil {
			j.port0[e.at] = true
		} else {
			j.hosts[e.at]++
		}
	}
}

func (j *Job) sender(p *observed.Port) sender {
	switch {
	case p.Node.Switch != nil:
		return sender{p, j.number[p.Node.Index], 0}
	case p.IsTrained() && p.Peer.Node.Switch != nil && p.Peer.Num != 0:
		return sender{p, j.number[p.Peer.Node.Index], p.Peer.Num}
	}
	return sender{p, -1, 0}
}

func (s *sender) isSwitch() bool { return s.port.Node.Switch != nil }

// separate finds the islands, and who sends in each.
func (j *Job) separate() {
	j.findIslands()
	j.weigh()
}

func (j *Job) findIslands() {
	j.island = make([]int32, len(j.switches))
	for s := range j.island {
		j.island[s] = -1
	}
	var queue []int32
	for s := range j.switches {
		if j.island[s] >= 0 {
			continue
		}
		j.island[s] = int32(s)
		j.islands++
		for queue = append(queue[:0], int32(s)); len(queue) > 0; {
			at := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, l := range j.links[j.firstLink[at]:j.firstLink[at+1]] {
				if j.island[l.to] < 0 {
					j.island[l.to] = int32(s)
					queue = append(queue, l.to)
				}
			}
		}
	}
}

// audience says who sends to an end port.
type audience uint8

const (
	fromNobody audience = iota
	fromHosts           // CA and router ports
	fromHostsAndManager
	fromAll
)

// audienceOf says who sends to an end port.
func (j *Job) audienceOf(to *sender) audience {
	switch {
	case j.in.Talk == Everybody, j.in.Talk == Answers && (!to.isSwitch() || to.port == j.in.Fabric.Self):
		return fromAll
	case j.in.Talk == Answers:
		return fromHostsAndManager
	case !to.isSwitch():
		return fromHosts
	}
	return fromNobody
}

// sends reports whether a sender is of an audience.
func (j *Job) sends(who audience, from *sender) bool {
	switch {
	case who == fromNobody:
		return false
	case who == fromAll || !from.isSwitch():
		return true
	}
	return who == fromHostsAndManager && from.port == j.in.Fabric.Self
}

// weights are numbers of senders, by audience.
type weights struct {
	at     [4][]int32          // by switch
	island [4]map[int32]uint64 // by island
	all    [4]uint64           // those without a switch too
}

func (j *Job) weigh() {
	w := &j.weights
	for who := range w.at {
		w.at[who], w.island[who] = make([]int32, len(j.switches)), map[int32]uint64{}
		for i := range j.ends {
			e := &j.ends[i]
			if !j.sends(audience(who), e) {
				continue
			}
			w.all[who]++
			if e.at >= 0 {
				w.at[who][e.at]++
				w.island[who][j.island[e.at]]++
			}
		}
	}
}

// blockLIDs is the number of LIDs that are looked at together: those of a cache line of a
// forwarding table.
const blockLIDs = smp.LIDsPerLinearBlock

// Blocks is the number of blocks of LIDs.
func (j *Job) Blocks() int {
	if len(j.dests) == 0 {
		return 0
	}
	return int(j.dests[len(j.dests)-1].lid)/blockLIDs + 1
}
