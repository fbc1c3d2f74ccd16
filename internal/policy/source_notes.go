// source*.go: provides what the readers of policy files share: text with
// positions, parsing of numbers and words, collection of
// faults, and the checks that hold for every format.
//
// It knows no format.

package policy

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// FaultsMax is how many faults are found before reading stops.
const FaultsMax = 1000

// SourceNotes collects faults and warnings while a text is read.
type SourceNotes struct {
	Faults, Warnings []Fault
}

// Fault notes what was found, told by format and args, in place of what was
// expected.
func (n *SourceNotes) Fault(at Pos, expected, format string, args ...any) {
	if !n.Full() {
		n.Faults = append(n.Faults, Fault{Pos: at, Found: fmt.Sprintf(format, args...), Expected: expected})
	}
}

// Warn notes what is odd but certain in meaning.
func (n *SourceNotes) Warn(at Pos, format string, args ...any) {
	n.Warnings = append(n.Warnings, Fault{Pos: at, Found: fmt.Sprintf(format, args...)})
}

// Full reports whether so many faults were found that reading on is no use.
func (n *SourceNotes) Full() bool { return len(n.Faults) >= FaultsMax }

// Err is the *Error of the faults, nil if there are none. The name is
// that of the text.
func (n *SourceNotes) Err(name string) error {
	if len(n.Faults) == 0 {
		return nil
	}
	if n.Full() {
		n.Faults = append(n.Faults, Fault{Found: fmt.Sprintf("%d faults or more: reading stopped", FaultsMax)})
	}
	SortFaults(n.Faults)
	return &Error{Name: name, Faults: n.Faults}
}

// Result is the policy with its warnings, or the error with all faults.
func (n *SourceNotes) Result(p *Policy, name string) (*Policy, error) {
	if err := n.Err(name); err != nil {
		return nil, err
	}
	SortFaults(n.Warnings)
	p.Warnings, p.Source = n.Warnings, name
	return p, nil
}

// SourceGroups adds multicast groups to partitions, and finds those that cannot
// stand together. One value serves one policy.
type SourceGroups struct {
	*SourceNotes
	seen map[groupKey]Pos
}

// groupKey tells groups apart: an IPoIB address is another one in each partition.
type groupKey struct {
	partition int
	mgid      ib.GID
}

// Add puts g into part, the policy's i-th partition, or notes why it cannot.
func (c *SourceGroups) Add(i int, part *Partition, g MulticastGroup) {
	key := groupKey{partition: -1, mgid: g.MGID}
	if g.IsIPoIB() {
		key.partition = i
		for _, other := range part.Multicast {
			if other.IsIPoIB() && (other.MTU != g.MTU || other.Rate != g.Rate) {
				c.Fault(g.Pos, fmt.Sprintf("MTU %v and rate %v, as the IPoIB group at %v of the same partition", other.MTU, other.Rate, other.Pos),
					"IPoIB group %v with MTU %v and rate %v", g.MGID, g.MTU, g.Rate)
				return
			}
		}
	}
	if part.RateLimit != 0 && g.Rate.Tenths() > part.RateLimit.Tenths() {
		c.Fault(g.Pos, fmt.Sprintf("a rate of at most %v", part.RateLimit), "a group of rate %v in a partition with rate_limit %v", g.Rate, part.RateLimit)
		return
	}
	if first, ok := c.seen[key]; ok {
		c.Fault(g.Pos, "each group once", "group %v again, as at %v", g.MGID, first)
		return
	}
	if c.seen == nil {
		c.seen = map[groupKey]Pos{}
	}
	c.seen[key] = g.Pos
	part.Multicast = append(part.Multicast, g)
}
