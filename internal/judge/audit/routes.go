package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// walks is the result of following the forwarding tables from every switch before a host
// to every LID.
type walks struct {
	broken []fault
	more   int // broken routes beyond MaxPerCheck, which are counted
	unread map[*observed.Node]bool
	// waits maps each exit of a switch to those that a packet which left by it
	// may have to wait for at the next switch.
	waits map[*observed.Port]map[*observed.Port]bool
}

// fault is a place and what is the matter with the routes there.
type fault struct{ where, what string }

// outcome is where the walk from a switch ended.
type outcome uint8

const (
	unvisited outcome = iota
	underway
	finished
)

// routes walks the fabric once.
func (a *auditor) routes() *walks {
	if a.walked != nil {
		return a.walked
	}
	w := &walks{unread: map[*observed.Node]bool{}, waits: map[*observed.Port]map[*observed.Port]bool{}}
	a.walked = w
	var sources []*observed.Node
	for _, n := range a.f.Switches() {
		if slices.ContainsFunc(n.Ports, func(p observed.Port) bool { return p.FacesEnd() }) {
			sources = append(sources, n)
		}
	}
	visited := make([]outcome, len(a.f.Nodes))
	for _, to := range a.f.EndPorts() {
		if !to.InfoRead || !to.Info.LID.IsUnicast() || to.Node.Switch == nil && to.Peer == nil {
			continue
		}
		for lid := int(to.Info.LID); lid < int(to.Info.LID)+1<<to.Info.LMC; lid++ {
			clear(visited)
			for _, from := range sources {
				w.walk(from, to, ib.LID(lid), visited)
			}
		}
	}
	return w
}

// walk follows lid from a switch until it ends or reaches an earlier walk.
func (w *walks) walk(from *observed.Node, to *observed.Port, lid ib.LID, visited []outcome) {
	var trail []*observed.Node
	var entered *observed.Port // the exit of the switch before
	say := func(at *observed.Node, format string, args ...any) {
		if len(w.broken) == MaxPerCheck {
			w.more++
			return
		}
		w.broken = append(w.broken, fault{nodePlace(at), fmt.Sprintf("LID %s of %s: ", lid, to) + fmt.Sprintf(format, args...)})
	}
	for at := from; ; {
		if visited[at.Index] == underway {
			say(at, "the route comes back to this switch")
		}
		out, read := at.Switch.Exit(lid, observed.AnyPort)
		known := visited[at.Index] != unvisited
		var next *observed.Port
		if p := at.Port(out); p != nil && out != 0 {
			if entered != nil {
				w.wait(entered, p)
			}
			entered, next = p, p.Peer
		}
		if known {
			break
		}
		visited[at.Index] = underway
		trail = append(trail, at)
		switch {
		case !read:
			w.unread[at] = true
		case out == 0 && at == to.Node || next == to:
		case next == nil && (out == ib.PortNone || int(out) >= len(at.Ports)):
			say(at, "no route")
		case next == nil:
			say(at, "routed to port %d, where there is no device", out)
		case next.Node.Switch == nil:
			say(at, "routed to port %d, where %s is", out, next)
		default:
			at = next.Node
			continue
		}
		break
	}
	for _, n := range trail {
		visited[n.Index] = finished
	}
}

// wait records that a packet which left by p may wait for the exit q of the
// next switch. Exits to end ports hold up nobody.
func (w *walks) wait(p, q *observed.Port) {
	if q.Peer == nil || q.Peer.Node.Switch == nil {
		return
	}
	if w.waits[p] == nil {
		w.waits[p] = map[*observed.Port]bool{}
	}
	w.waits[p][q] = true
}

func (a *auditor) routeBroken() {
	w := a.routes()
	for _, f := range w.broken {
		a.found(f.where, "%s", f.what)
	}
	for range w.more {
		a.found("more routes", "counted and not listed")
	}
	a.unreadRoutes(w)
}

// unreadRoutes enters what the walks lacked: tables, and the addresses of end
// ports.
func (a *auditor) unreadRoutes(w *walks) {
	for _, n := range a.f.Switches() {
		if w.unread[n] {
			a.unknown(nodePlace(n), "the forwarding table was not read as a whole")
		}
	}
	for _, p := range a.f.EndPorts() {
		a.info(p)
	}
}

func (a *auditor) creditLoop() {
	w := a.routes()
	a.unreadRoutes(w)
	circle := w.circle()
	if circle == nil {
		return
	}
	var names []string
	lanes := false
	for i, p := range circle {
		if i < maxCircleNames {
			names = append(names, p.String())
		}
		lanes = lanes || !p.InfoRead || smp.DataVLs(p.Info.OperationalVLs) > 1 && spreads(p)
	}
	if len(circle) > maxCircleNames {
		names = append(names, fmt.Sprintf("and %d more", len(circle)-maxCircleNames))
	}
	where, what := place(circle[0]), "links that wait for each other: "+strings.Join(names, ", ")
	if lanes {
		a.unknown(where, "%s; they map service levels to several VLs, and which path takes which level was not read", what)
		return
	}
	a.found(where, "%s", what)
}

// maxCircleNames bounds the links of a circle that are named.
const maxCircleNames = 8

// spreads reports whether p maps service levels to more than one virtual lane, or may.
func spreads(p *observed.Port) bool {
	lanes := map[ib.VL]bool{}
	for _, t := range p.SLToVL {
		for _, vl := range t.VLs {
			if vl != ib.VLManagement {
				lanes[vl] = true
			}
		}
	}
	return p.SLToVL == nil || len(lanes) > 1
}

// circle finds exits that wait for each other in a circle, nil when there are
// none.
func (w *walks) circle() []*observed.Port {
	order := func(x, y *observed.Port) int {
		if x.Node.Index != y.Node.Index {
			return x.Node.Index - y.Node.Index
		}
		return int(x.Num) - int(y.Num)
	}
	state := map[*observed.Port]outcome{}
	type frame struct {
		at   *observed.Port
		rest []*observed.Port
	}
	for _, root := range slices.SortedFunc(maps.Keys(w.waits), order) {
		if state[root] != unvisited {
			continue
		}
		enter := func(p *observed.Port) frame {
			state[p] = underway
			return frame{p, slices.SortedFunc(maps.Keys(w.waits[p]), order)}
		}
		for stack := []frame{enter(root)}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if len(top.rest) == 0 {
				state[top.at] = finished
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.rest[0]
			top.rest = top.rest[1:]
			switch state[next] {
			case unvisited:
				stack = append(stack, enter(next))
			case underway:
				var out []*observed.Port
				for i := len(stack) - 1; ; i-- {
					if out = append(out, stack[i].at); stack[i].at == next {
						slices.Reverse(out)
						return out
					}
				}
			}
		}
	}
	return nil
}
