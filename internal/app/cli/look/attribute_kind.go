package look

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/names"
)

// AttributeKind is an attribute that can be read.
type AttributeKind struct {
	ID   mad.AttributeID
	Name string
	// Performance reports whether it is one of performance management; the others are of subnet
	// management.
	Performance bool
	// Layout describes an attribute of subnet management. One of a vendor's own has none (Known
	// is false), and is bytes.
	Layout smp.Descriptor
	Known  bool
}

// aliases are other names under which texts have attributes.
var aliases = map[string]string{"vlarbitration": "VLArbitrationTable", "sltovlmapping": "SLToVLMappingTable", "slvl": "SLToVLMappingTable"}

// plain is a name as it is compared: without underscores, in small letters.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// Kinds lists the attributes that have names.
func Kinds() (out []AttributeKind) {
	for _, d := range smp.Attributes() {
		out = append(out, AttributeKind{ID: d.ID, Name: d.Name, Layout: d, Known: true})
	}
	for _, d := range pm.Attributes() {
		out = append(out, AttributeKind{ID: d.ID, Name: d.Name, Performance: true, Known: true})
	}
	return append(out, AttributeKind{ID: mad.AttrClassPortInfo, Name: "ClassPortInfo", Performance: true, Known: true})
}

// FindAttribute finds an attribute by its name, in letters of either case and with or without
// underscores, or an attribute of subnet management by its number.
func FindAttribute(text string) (AttributeKind, error) {
	want := plain(text)
	if other, has := aliases[want]; has {
		want = plain(other)
	}
	var known []string
	for _, k := range Kinds() {
		if plain(k.Name) == want {
			return k, nil
		}
		known = append(known, k.Name)
	}
	if n, err := strconv.ParseUint(text, 0, 16); err == nil {
		id := mad.AttributeID(n)
		d, is := smp.Describe(id)
		if is {
			return AttributeKind{ID: id, Name: d.Name, Layout: d, Known: true}, nil
		}
		return AttributeKind{ID: id, Name: fmt.Sprintf("0x%04X", n), Layout: smp.Descriptor{ID: id, Of: smp.OfNode, Modifier: smp.ModifierBlock}}, nil
	}
	hint := names.DidYouMean(text, known)
	if hint == "" {
		hint = "; want one of " + strings.Join(known, ", ") + ", or a number such as 0xFF00"
	}
	return AttributeKind{}, fmt.Errorf("no attribute is called %q%s", text, hint)
}

// explain explains an answer.
func (k AttributeKind) explain(modifier uint32, data []byte) ([]ib.Explained, error) {
	switch {
	case !k.Known:
		return []ib.Explained{{Name: "Data", Value: fmt.Sprintf("0x%x", data)}}, nil
	case k.Performance && k.ID == mad.AttrClassPortInfo:
		var c mad.ClassPortInfo
		err := c.UnmarshalBinary(data)
		return pm.Explain(&c), err
	case k.Performance:
		a, err := pm.Decode(k.ID, data)
		if err != nil {
			return nil, err
		}
		return pm.Explain(a), nil
	}
	a, err := smp.Decode(k.ID, data)
	if err != nil {
		return nil, err
	}
	return smp.Explain(a, modifier), nil
}

// size is how many bytes of an answer mean something.
func (k AttributeKind) size() int {
	switch {
	case k.Performance && k.ID == mad.AttrClassPortInfo:
		return mad.ClassPortInfoSize
	case k.Performance:
		d, _ := pm.Describe(k.ID)
		return d.Size
	case k.Known:
		return k.Layout.Size
	}
	return mad.DataSize
}

// conceal puts zeros in the place of secret keys.
func (k AttributeKind) conceal(data []byte) {
	if k.Performance {
		return
	}
	switch k.ID {
	case smp.AttrPortInfo:
		clear(data[0:8])
	case smp.AttrSMInfo:
		clear(data[8:16])
	case smp.AttrNotice:
		var n smp.Notice
		if n.UnmarshalBinary(data) == nil && (!n.IsGeneric || n.TrapNumber == smp.TrapBadMKey) {
			clear(data[24:32])
		}
	}
}
