package policy

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// Allocate gives a number to each partition that states none. The answer maps
// their names to their numbers and holds nothing else; it depends on the
// policy and on previous, the answer for the policy before, alone.
//
// A partition keeps the number it had. Another gets the lowest number, from
// Partition.From or 0x0001 up, that no partition states and none had before: while a change is
// being carried out a port may still hold the key of a partition that is
// going, so its number is used again only when no other is left. The default
// partition's number is never given away.
//
// It is an error when a partition states a number that another one already
// has from an earlier allocation, and when no number is left.
func Allocate(p *Policy, previous map[string]ib.PKeyBase) (map[string]ib.PKeyBase, error) {
	return AllocateExcept(p, previous, nil)
}

// AllocateExcept does what Allocate does, and gives nobody a number that is reserved
// unless he had it before.
func AllocateExcept(p *Policy, previous map[string]ib.PKeyBase, reserved func(ib.PKeyBase) bool) (map[string]ib.PKeyBase, error) {
	taken := map[ib.PKeyBase]string{ib.PKeyBaseDefault: DefaultName}
	for _, part := range p.Partitions {
		if part.PKey != 0 {
			taken[part.PKey] = part.Name
		}
	}
	given := map[string]ib.PKeyBase{}
	for _, part := range p.Partitions {
		had, ok := previous[part.Name]
		if part.PKey != 0 || !ok || !had.IsValid() {
			continue
		}
		if other, stated := taken[had]; stated {
			return nil, fmt.Errorf("partition %q states P_Key %v, which was allocated to %q before: state another one, or state one for %q",
				other, had, part.Name, part.Name)
		}
		taken[had], given[part.Name] = part.Name, had
	}
	had := map[ib.PKeyBase]bool{}
	for _, base := range previous {
		had[base] = true
	}
	cursors := map[ib.PKeyBase]*cursor{}
	for _, part := range p.Partitions {
		if _, done := given[part.Name]; part.PKey != 0 || done {
			continue
		}
		from := max(part.From, 1)
		if cursors[from] == nil {
			cursors[from] = &cursor{from, from, reserved}
		}
		base := cursors[from].next(taken, had)
		if base > ib.PKeyBaseMax {
			if from > 1 {
				return nil, fmt.Errorf("partition %q: no P_Key is left from %v up, all %d are in use", part.Name, from, ib.PKeyBaseMax-from+1)
			}
			return nil, fmt.Errorf("partition %q: no P_Key is left, all %d are in use", part.Name, ib.PKeyBaseMax)
		}
		taken[base], given[part.Name] = part.Name, base
	}
	return given, nil
}

// cursor finds one number after another: unused is the lowest that may be one
// that nobody had, free the lowest that may be one that nobody has.
type cursor struct {
	unused, free ib.PKeyBase
	reserved     func(ib.PKeyBase) bool
}

func (c *cursor) isReserved(k ib.PKeyBase) bool { return c.reserved != nil && c.reserved(k) }

// next is the lowest number that is neither taken nor was had by anybody, else
// that is not taken; above ib.PKeyBaseMax when there is none.
func (c *cursor) next(taken map[ib.PKeyBase]string, had map[ib.PKeyBase]bool) ib.PKeyBase {
	for c.unused <= ib.PKeyBaseMax && (had[c.unused] || taken[c.unused] != "" || c.isReserved(c.unused)) {
		c.unused++
	}
	if c.unused <= ib.PKeyBaseMax {
		return c.unused
	}
	for c.free <= ib.PKeyBaseMax && (taken[c.free] != "" || c.isReserved(c.free)) {
		c.free++
	}
	return c.free
}

// FillNumbers states the numbers of partitions that state none.
func FillNumbers(p *Policy, numbers map[string]ib.PKeyBase) {
	for i := range p.Partitions {
		if x := &p.Partitions[i]; x.PKey == 0 {
			x.PKey = numbers[x.Name]
		}
	}
	for i := range p.Services {
		s := &p.Services[i]
		for j := range s.To {
			if t := &s.To[j]; t.PKey == 0 {
				t.PKey = numbers[s.PartitionName(t.Name)]
			}
		}
	}
}
