package daemon

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// SMPs counts the packets that were sent, retries included.
type SMPs struct {
	Get         int              `json:"get"`
	Set         int              `json:"set"`
	ByAttribute []AttributeCount `json:"by_attribute"`
}

// AttributeCount counts the packets of one attribute.
type AttributeCount struct {
	Attribute string `json:"attribute"`
	Get       int    `json:"get"`
	Set       int    `json:"set"`
}

// counter counts packets by method and attribute.
type counter struct {
	by map[mad.AttributeID]*AttributeCount
}

func (c *counter) count(m mad.Method, a mad.AttributeID) {
	if c.by == nil {
		c.by = make(map[mad.AttributeID]*AttributeCount)
	}
	n := c.by[a]
	if n == nil {
		n = &AttributeCount{Attribute: smp.AttributeName(a)}
		c.by[a] = n
	}
	if m == mad.MethodGet {
		n.Get++
	} else {
		n.Set++
	}
}

func (c *counter) smps() SMPs {
	s := SMPs{ByAttribute: make([]AttributeCount, 0, len(c.by))}
	ids := make([]mad.AttributeID, 0, len(c.by))
	for id := range c.by {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b mad.AttributeID) int { return cmp.Compare(a, b) })
	for _, id := range ids {
		n := *c.by[id]
		s.Get, s.Set = s.Get+n.Get, s.Set+n.Set
		s.ByAttribute = append(s.ByAttribute, n)
	}
	return s
}
