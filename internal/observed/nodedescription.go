package observed

import (
	"github.com/ibwarden/ibwarden/ib/smp"
)

// keptNodeDescription: a snapshot's file has a field for it in the node itself.
var keptNodeDescription = kept{id: smp.AttrNodeDescription, absorb: (*Port).absorbNodeDescription}

func (p *Port) absorbNodeDescription(_ uint32, data []byte) error {
	var d smp.NodeDescription
	if err := d.UnmarshalBinary(data); err != nil {
		return err
	}
	if text := d.String(); text != p.Node.Description {
		p.Node.Description = text
		p.noteNode(smp.AttrNodeDescription)
	}
	return nil
}
