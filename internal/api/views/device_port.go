package views

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// PortDetails is a port whole.
type PortDetails struct {
	DevicePort
	Words      []string        `json:"words" doc:"how it is, in sentences"`
	PKeys      []PortKey       `json:"pkeys" doc:"the P_Keys that its table holds, by index"`
	Attributes []PortAttribute `json:"attributes" doc:"what it answered, field by field, but for its P_Key table and forwarding tables. Of an M_Key or SM_Key only whether it is 0"`
	Unread     []string        `json:"unread" doc:"what was not read"`
	ReadAt     time.Time       `json:"read_at"`
}

// PortKey is an entry of a P_Key table.
type PortKey struct {
	Index     int    `json:"index"`
	PKey      string `json:"pkey" doc:"number of the partition"`
	Full      bool   `json:"full"`
	Partition string `json:"partition,omitempty" doc:"its name; absent where the caller sees no such partition"`
}

// PortAttribute is an attribute as a device answered it.
type PortAttribute struct {
	Name     string           `json:"name"`
	Modifier string           `json:"modifier,omitempty" doc:"which block or port it is of; absent for 0"`
	Old      bool             `json:"old,omitempty" doc:"the last time that it was asked for it was not read, so that it may be out of date"`
	Fields   []AttributeField `json:"fields"`
}

// AttributeField is a field of an attribute.
type AttributeField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// tables are attributes that are not shown field by field: their entries are elsewhere in
// the API.
var tables = map[mad.AttributeID]bool{
	smp.AttrPKeyTable: true, smp.AttrLinearForwardingTable: true, smp.AttrRandomForwardingTable: true, smp.AttrMulticastForwardingTable: true,
}

// Details is a port whole.
func (v *DeviceView) Details(p *observed.Port) PortDetails {
	out := PortDetails{DevicePort: v.portOf(p), Words: v.portWords(p), PKeys: v.keys(p), Attributes: []PortAttribute{}, Unread: []string{}, ReadAt: v.ReadAt}
	out.Unread = append(out.Unread, lacks(p)...)
	v.Node.Answers(func(b observed.Block, a smp.Attribute, read bool) {
		if b.Port != p || tables[b.Attribute] {
			return
		}
		x := PortAttribute{Name: fmt.Sprintf("0x%04x", uint16(b.Attribute)), Old: !read, Fields: []AttributeField{}}
		if d, known := smp.Describe(b.Attribute); known {
			x.Name = d.Name
		}
		if b.Modifier != 0 {
			x.Modifier = fmt.Sprintf("0x%08x", b.Modifier)
		}
		for _, f := range smp.Fields(a) {
			x.Fields = append(x.Fields, AttributeField(f))
		}
		out.Attributes = append(out.Attributes, x)
	})
	return out
}

// keys are the keys that a port holds.
func (v *DeviceView) keys(p *observed.Port) []PortKey {
	out := []PortKey{}
	for i, k := range p.ReadPKeys() {
		if k.IsValid() {
			out = append(out, PortKey{i, k.Base().String(), k.IsFull(), v.partition(k.Base())})
		}
	}
	return out
}

// partition is the name of a partition that the caller sees.
func (v *DeviceView) partition(k ib.PKeyBase) string {
	if k == ib.PKeyBaseDefault {
		return "default"
	}
	return v.names[k]
}
