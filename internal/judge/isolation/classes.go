package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Class is a number of end ports whose P_Key tables give them the same.
type Class struct {
	// PKeys are the keys, one for each partition, full when any of them is;
	// ordered by partition.
	PKeys []ib.PKey `json:"pkeys"`
	// Unread reports whether the tables were not read whole: there may be more.
	Unread bool `json:"unread"`
	Count  int  `json:"count"`
	// Ports are the first MaxListed of them by GUID.
	Ports []ib.PortGUID `json:"ports"`
}

// Classes sorts the end ports of a fabric by what their tables give them, the
// largest class first. Ports of one class can talk to the same ports.
func Classes(f *observed.Fabric) []Class {
	sets := newKeySets()
	type kind struct {
		set    int32
		unread bool
	}
	at := make(map[kind]int)
	out := []Class{}
	var scratch []ib.PKey
	for _, p := range f.EndPorts() {
		scratch = readKeys(scratch[:0], p)
		k := kind{sets.id(newKeySet(scratch)), !isKnown(p)}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, Class{PKeys: append([]ib.PKey{}, sets.sets[k.set]...), Unread: k.unread, Ports: []ib.PortGUID{}})
		}
		if counted(&out[i].Count, MaxListed) {
			out[i].Ports = append(out[i].Ports, p.GUID)
		}
	}
	slices.SortStableFunc(out, func(a, b Class) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), slices.Compare(a.PKeys, b.PKeys))
	})
	return out
}

// AsTables is the policy that the tables of the end ports amount to, ordered by
// P_Key: a proof against it says whether switches hold everybody to it. Each
// partition is named by its number.
func AsTables(f *observed.Fabric) []observed.Partition {
	at := make(map[ib.PKeyBase]*observed.Partition)
	var scratch []ib.PKey
	for _, p := range f.EndPorts() {
		scratch = readKeys(scratch[:0], p)
		for _, k := range newKeySet(scratch) {
			part := at[k.Base()]
			if part == nil {
				part = &observed.Partition{Name: k.Base().String(), Base: k.Base()}
				at[k.Base()] = part
			}
			if k.IsFull() {
				part.Full = append(part.Full, p.GUID)
			} else {
				part.Limited = append(part.Limited, p.GUID)
			}
		}
	}
	out := make([]observed.Partition, 0, len(at))
	for _, part := range at {
		out = append(out, *part)
	}
	slices.SortFunc(out, func(a, b observed.Partition) int { return cmp.Compare(a.Base, b.Base) })
	return out
}

// Outdate makes the proof Unknown because what it rests on was read too long
// ago. A violation stands: it was there when it was read.
func (p *Proof) Outdate(age, limit time.Duration) {
	reason := fmt.Sprintf("read %s ago, want at most %s", age.Round(time.Second), limit)
	p.Reasons = append([]string{reason}, p.Reasons...)
	p.Outdated = true
	if p.Verdict < Unknown {
		p.Verdict = Unknown
	}
	for i := range p.Pairs {
		if pair := &p.Pairs[i]; pair.Verdict < Unknown {
			pair.Verdict, pair.Reason = Unknown, reason
		}
	}
	c := &p.Counts.Pairs
	c.Unknown += c.Isolated + c.ByEndPorts
	c.Isolated, c.ByEndPorts = 0, 0
}
