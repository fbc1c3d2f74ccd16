package shadow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// judgement is what a reading shows.
type judgement struct {
	Input
	proof    *isolation.Proof
	complete bool
	facts    []Fact
	// cut are the kinds of which not all facts are listed, more says that of pairs of ports.
	cut   map[Kind]bool
	more  bool
	ports map[ib.PortGUID]*observed.Port
	// given are the names of the partitions of a port.
	given map[ib.PortGUID][]string
}

// judge finds the facts of a reading.
func judge(l *Ledger, in Input) *judgement {
	prover := isolation.NewProver(in.Fabric, in.Allowed)
	j := &judgement{Input: in, proof: prover.Proof(), cut: map[Kind]bool{}, ports: map[ib.PortGUID]*observed.Port{}, given: map[ib.PortGUID][]string{}}
	j.complete = in.Fabric.Self != nil && !in.Missing && j.proof.Counts.Unknown == 0
	for _, p := range in.Fabric.EndPorts() {
		j.ports[p.GUID] = p
	}
	for _, p := range in.Allowed {
		for _, g := range slices.Concat(p.Full, p.Limited) {
			if p.Base != ib.PKeyBaseDefault && len(j.given[g]) < PartitionsShown {
				j.given[g] = append(j.given[g], p.Name)
			}
		}
	}
	j.exposures(prover, l.pairs())
	j.unguarded()
	j.switches()
	j.hosts(l)
	j.unread()
	if j.complete { // else it may be that of a port that was not read
		for _, name := range in.Absent {
			j.facts = append(j.facts, Fact{Kind: AbsentName, Text: name})
		}
	}
	return j
}

// ends reports whether a reading that does not show a fact shows that it is no more.
func (j *judgement) ends(s *Span) bool {
	if s.Kind != Unread && !j.complete || j.cut[s.Kind] {
		return false
	}
	return s.Kind == Unread || j.tells(&s.A) && j.tells(&s.B)
}

// tells reports whether a reading that was complete tells of a port: it was read, or where it was
// cabled, and then it is nowhere.
func (j *judgement) tells(p *Port) bool {
	if p.Switch == 0 || j.ports[p.GUID] != nil && p.GUID != 0 {
		return true
	}
	at := j.Fabric.At(p.place())
	return at != nil && at.InfoRead
}

// follow enters where a port is now, and reports whether that is elsewhere.
func (j *judgement) follow(p *Port) bool {
	is := j.ports[p.GUID]
	if is == nil || p.GUID == 0 {
		return false
	}
	was := p.place()
	*p = j.port(is)
	return was != p.place()
}

// port is a port of the reading.
func (j *judgement) port(p *observed.Port) Port {
	at := p.Place()
	if p.Node.Switch == nil && p.Peer != nil {
		at = p.Peer.Place()
	}
	return Port{p.GUID, p.String(), at.Node, at.Port, j.given[p.GUID]}
}

func (j *judgement) exposures(prover *isolation.Prover, open [][2]ib.PortGUID) {
	var pairs []isolation.Breach
	pairs, j.more = prover.Breaches(ExposuresMax, open)
	for _, b := range pairs {
		f := Fact{Kind: Exposure, A: j.port(j.ports[b.From]), B: j.port(j.ports[b.To]), Text: "can talk over " + b.PKey.String()}
		if b.Verdict != isolation.Violated {
			f.Kind, f.Text = Forgeable, "could talk over "+b.PKey.String()+" if one forges its table"
		}
		j.facts = append(j.facts, f)
	}
}

func (j *judgement) unguarded() {
	j.cut[Unguarded] = j.proof.Counts.Unenforced > len(j.proof.Unenforced)
	for _, x := range j.proof.Unenforced {
		at := j.Fabric.At(observed.Place{Node: x.Node, Port: x.Port})
		if at == nil { // two devices claim this GUID
			j.cut[Unguarded] = true
			continue
		}
		f := Fact{Kind: Unguarded, A: j.port(at), Text: x.Reason}
		if at.Peer != nil && !at.IsEnd() {
			f.B = j.port(at.Peer)
		}
		j.facts = append(j.facts, f)
	}
}

// switches finds those without routes.
func (j *judgement) switches() {
	for _, n := range j.Fabric.Switches() {
		s := n.Switch
		if !s.InfoRead || s.Info.LinearFDBCap == 0 || slices.Contains(s.LFTRead, false) {
			continue
		}
		if s.Info.LinearFDBTop == 0 || !slices.ContainsFunc(s.LFT, n.LeadsSomewhere) {
			j.facts = append(j.facts, Fact{Kind: EmptySwitch, A: j.port(&n.Ports[0]), Text: "its forwarding table is empty"})
		}
	}
}

// hosts finds those that are cabled elsewhere than before, and cannot work there yet.
func (j *judgement) hosts(l *Ledger) {
	lack := map[ib.PortGUID]ib.PKey{}
	for _, m := range j.proof.Missing {
		lack[m.EndPort] = m.PKey
	}
	for _, p := range j.Fabric.EndPorts() {
		if p.Node.Switch != nil || p.Peer == nil || p.Node.Contested {
			continue
		}
		at := p.Peer.Place()
		was, known := l.seen[p.GUID]
		l.seen[p.GUID] = at
		if _, moved := l.moved[p.GUID]; known && was != at && !moved {
			l.moved[p.GUID] = was
		}
		from, moved := l.moved[p.GUID]
		if !moved {
			continue
		}
		why := unable(p, lack[p.GUID])
		if why == "" || from == at {
			delete(l.moved, p.GUID)
			continue
		}
		name := from.String()
		if n := j.Fabric.At(from); n != nil {
			name = n.String()
		}
		j.facts = append(j.facts, Fact{Kind: MovedHost, A: j.port(p), B: Port{Name: name, Switch: from.Node, Number: from.Port}, Text: why})
	}
}

// unable says why a host cannot work where it is cabled; empty where it can, as far as that was
// read.
func unable(p *observed.Port, lack ib.PKey) string {
	switch {
	case !p.InfoRead:
		return ""
	case p.Info.PortState != smp.PortActive:
		return "its link is not active"
	case lack != 0:
		return "its tables lack " + lack.String()
	case p.Peer.Node.Switch == nil:
		return ""
	}
	if out, known := p.Peer.Node.Switch.Exit(p.Info.LID, 0); known && out != p.Peer.Num {
		return fmt.Sprintf("the switch does not lead its LID %d to it", p.Info.LID)
	}
	return ""
}

// unread lists what was not read, each place once.
func (j *judgement) unread() {
	places := slices.Clone(j.Unread)
	for _, x := range j.proof.Unknown {
		places = append(places, Place{x.Name, strings.TrimSpace(x.Reason)})
	}
	named := map[string]bool{}
	for _, x := range places {
		if named[x.Where] {
			continue
		}
		if len(named) == UnreadMax {
			j.cut[Unread] = true
			return
		}
		named[x.Where] = true
		j.facts = append(j.facts, Fact{Kind: Unread, A: Port{Name: x.Where}, Text: x.Why})
	}
}
