package reach

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// partitionsNamed bounds the partitions that a sentence names, and the remedies of one kind.
const partitionsNamed = 4

// Kinds of remedies.
const (
	AddMember = "add-member" // add Port to the partition
	MakeFull  = "make-full"  // make Port a full member of the partition
	Repair    = "repair"     // no change of members helps: Text says what does
)

// Remedy is a change that would let two ports talk.
type Remedy struct {
	Kind string
	// PKey and Name are the partition, and Port the end port that is to become a member
	// of it; zero in a repair.
	PKey ib.PKeyBase
	Name string
	Port ib.PortGUID
	// Text says it for people.
	Text string
}

// explanation is what the words are made of.
type explanation struct {
	from, to *observed.Port
	view     View
	answer   *Answer
	stopped  *Shared
}

// partition names a partition for people.
func (e *explanation) partition(b ib.PKeyBase) string {
	switch {
	case b == ib.PKeyBaseDefault:
		return "the default partition"
	case e.view.Names[b] != "":
		return fmt.Sprintf("%s (%s)", e.view.Names[b], b)
	}
	return "partition " + b.String()
}

// list joins the names of partitions.
func (e *explanation) list(bases []ib.PKeyBase) string {
	var words []string
	for i, b := range bases {
		if i == partitionsNamed {
			words = append(words, fmt.Sprintf("%d more", len(bases)-i))
			break
		}
		words = append(words, e.partition(b))
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

func (e *explanation) sentence() string {
	var over []ib.PKeyBase
	for i := range e.answer.Shared {
		if s := &e.answer.Shared[i]; e.answer.Cause != CauseTalk || s.talks() {
			over = append(over, s.PKey)
		}
	}
	switch e.answer.Cause {
	case CauseTalk:
		return fmt.Sprintf("%s and %s can talk over %s", e.from, e.to, e.list(over))
	case CauseBothLimited:
		return fmt.Sprintf("both are limited members of %s and share no other partition; one of the two has to be a full member", e.list(over))
	case CauseNoPartition:
		return fmt.Sprintf("they share no partition: %s %s, %s %s", e.from, e.memberOf(e.from), e.to, e.memberOf(e.to))
	case CauseStopped:
		from, to, t := e.from, e.to, e.stopped.There
		if t.Disposition == Delivered || t.Disposition == Unknown {
			from, to, t = e.to, e.from, e.stopped.Back
		}
		text := fmt.Sprintf("their keys of %s match, but a packet from %s to %s is stopped (%s)", e.partition(e.stopped.PKey), from, to, t.Disposition)
		if !e.view.Brief {
			text += ": " + t.Reason
		}
		return text
	}
	for _, p := range []*observed.Port{e.from, e.to} {
		if !tableKnown(p) {
			return fmt.Sprintf("it is not known whether they can talk: the P_Key table of %s was not read whole", p)
		}
	}
	t := e.stopped.There
	if t.Disposition != Unknown {
		t = e.stopped.Back
	}
	text := fmt.Sprintf("it is not known whether they can talk: their keys of %s match, but not all of the way was read", e.partition(e.stopped.PKey))
	if !e.view.Brief {
		text += " (" + t.Reason + ")"
	}
	return text
}

// memberOf says which partitions a port is in.
func (e *explanation) memberOf(p *observed.Port) string {
	if bases := slices.Sorted(maps.Keys(e.view.memberships(p))); len(bases) > 0 {
		return "is in " + e.list(bases)
	}
	return "is in none"
}

// remedies are the changes that help, those of members by partition.
func (e *explanation) remedies() (out []Remedy) {
	switch e.answer.Cause {
	case CauseBothLimited:
		for _, s := range e.answer.Shared {
			for _, p := range []*observed.Port{e.from, e.to} {
				if !e.takes(s.PKey, p) || len(out) == 2*partitionsNamed {
					continue
				}
				out = append(out, Remedy{MakeFull, s.PKey, s.Name, p.GUID, fmt.Sprintf("make %s a full member of %s", p, e.partition(s.PKey))})
			}
		}
	case CauseNoPartition:
		for _, x := range [][2]*observed.Port{{e.from, e.to}, {e.to, e.from}} {
			bases := slices.DeleteFunc(slices.Sorted(maps.Keys(e.view.memberships(x[0]))), func(b ib.PKeyBase) bool { return b == ib.PKeyBaseDefault || !e.takes(b, x[1]) })
			for i, b := range bases {
				if i == partitionsNamed {
					break
				}
				out = append(out, Remedy{AddMember, b, e.view.Names[b], x[1].GUID, fmt.Sprintf("add %s to %s", x[1], e.partition(b))})
			}
		}
	case CauseStopped:
		t := e.stopped.There
		if t.Disposition == Delivered || t.Disposition == Unknown {
			t = e.stopped.Back
		}
		text := "ask the provider of the fabric"
		if !e.view.Brief {
			text = repair(t)
		}
		out = append(out, Remedy{Kind: Repair, Text: text})
	}
	return out
}

func (e *explanation) takes(b ib.PKeyBase, p *observed.Port) bool {
	return e.view.Takes == nil || e.view.Takes(b, p.GUID)
}

// repair says what helps where something on the way stops a packet.
func repair(t *Trace) string {
	switch t.Disposition {
	case InboundKey, OutboundKey:
		return "the tables of that switch port lack the key: have the subnet manager write them again, and look at its log for what it could not write"
	case InboundRaw, OutboundRaw:
		return "the raw filter of that switch port stops it"
	case LinkState, DeadEnd:
		return "have a subnet manager bring the link up; if it is Down, fix the cable or enable the port"
	case NoLane:
		return "give the service level a virtual lane on that port (the settings of virtual lanes in the policy)"
	}
	return "have the subnet manager compute the routes again (ibwarden show routing says what is wrong with them)"
}
