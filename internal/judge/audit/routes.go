package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// walks is the result of following the forwarding tables from every switch before a host
// to every LID.
type walks struct {
	broken []fault
	more   int // broken routes beyond MaxPerCheck, which are counted
	unread map[*observed.Node]bool
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
	w := &walks{unread: map[*observed.Node]bool{}}
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
		if visited[at.Index] != unvisited {
			break
		}
		var next *observed.Port
		if p := at.Port(out); p != nil && out != 0 {
			next = p.Peer
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

func (a *auditor) routeBroken() {
	w := a.routes()
	for _, f := range w.broken {
		a.found(f.where, "%s", f.what)
	}
	for range w.more {
		a.found("more routes", "counted and not listed")
	}
	for _, c := range a.judgeRoutes().Loops {
		if c.To == nil { // those of unicast LIDs were found on the way
			a.found(place(c.Exits[0]), "copies of multicast packets go round: %s", c)
		}
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

// judgeRoutes is the judgement of the routes for packets of every service level, made once.
func (a *auditor) judgeRoutes() *routes.Result {
	if a.judged == nil {
		in := routes.Read(a.f)
		in.Levels.Of = []routes.SLs{routes.AllSLs}
		in.Groups = routes.ReadGroups(a.f, func(ib.LID) routes.SLs { return routes.AllSLs })
		a.judged = routes.Judge(in)
	}
	return a.judged
}

func (a *auditor) creditLoop() {
	a.unreadRoutes(a.routes())
	circle := a.judgeRoutes().Deadlock
	if circle == nil {
		return
	}
	var steps []string
	lanes := false
	for i, w := range circle {
		if i < maxCircleSteps {
			steps = append(steps, w.String())
		}
		lanes = lanes || !w.Out.InfoRead || smp.DataVLs(w.Out.Info.OperationalVLs) > 1 && spreads(w.Out)
	}
	if len(circle) > maxCircleSteps {
		steps = append(steps, fmt.Sprintf("and %d more", len(circle)-maxCircleSteps))
	}
	where, what := place(circle[0].Out), "links that wait for each other: "+strings.Join(steps, "; ")
	if lanes {
		a.unknown(where, "%s; they map service levels to several VLs, and which path takes which level was not read", what)
		return
	}
	a.found(where, "%s", what)
}

// maxCircleSteps bounds the steps of a circle that are told.
const maxCircleSteps = 8

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
