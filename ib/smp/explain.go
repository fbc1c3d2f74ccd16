package smp

import (
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
)

// Explain explains every field of an attribute that was asked for by this modifier.
func Explain(a Attribute, modifier uint32) []ib.Explained {
	if n, is := a.(*NodeDescription); is {
		return []ib.Explained{{Name: "NodeString", Value: n.String()}}
	}
	d, _ := Describe(a.ID())
	var out []ib.Explained
	notice, _ := a.(*Notice)
	details := explainDetails(notice)
	layout.Walk(a, d.firstEntry(modifier), func(l layout.Leaf) {
		if notice != nil && l.Name == "Details" && details != nil {
			return // they follow, and a wrong M_Key among them is not shown
		}
		x := ib.Explained{Name: l.Name, Value: l.Value()}
		if w, has := words[a.ID()][l.Field]; has {
			if w.hex > 0 {
				x.Value = fmt.Sprintf("0x%0*x", w.hex, l.Number())
			}
			if w.say != nil {
				x.Meaning = w.say(l.Number())
			}
		} else {
			x.Meaning = meaning(l)
		}
		if a.ID() == AttrMulticastForwardingTable {
			_, position, _ := SplitMFTModifier(modifier)
			x.Meaning = exits(uint16(l.Number()), int(position))
		}
		out = append(out, x)
	})
	return append(out, details...)
}

// firstEntry is the number in the whole table of the first entry of a block.
func (d Descriptor) firstEntry(modifier uint32) int {
	switch d.Modifier {
	case ModifierBlock:
		return int(modifier) * d.PerBlock
	case ModifierPortBlock:
		_, block, _ := SplitPKeyModifier(modifier)
		return int(block) * d.PerBlock
	case ModifierBlockPosition:
		block, _, _ := SplitMFTModifier(modifier)
		return int(ib.LIDMulticastMin) + int(block)*MLIDsPerBlock
	case ModifierPartPort:
		part, _, _ := SplitVLArbModifier(modifier)
		return part.First()
	}
	return 0
}

// explainDetails are the details of a notice that has some of a known kind.
func explainDetails(n *Notice) (out []ib.Explained) {
	if n == nil || n.Type == NoticeEmpty {
		return nil
	}
	details, typed := n.TypedDetails()
	if !typed {
		return nil
	}
	layout.Walk(details, 0, func(l layout.Leaf) {
		out = append(out, ib.Explained{Name: "Details." + l.Name, Value: l.Value(), Meaning: meaning(l)})
	})
	return out
}

// meaning is that of a value by its type.
func meaning(l layout.Leaf) string {
	switch v := l.Of.Interface().(type) {
	case bool:
		return yes(l.Number())
	case ib.MKey:
		return secret(v == 0, "none: anybody may set the port")
	case ib.SMKey:
		return secret(v == 0, "none, or not told to who asks")
	case ib.PKey:
		return Membership(v)
	case ib.NodeType, PortState, PhysState, SMState, LinkWidth, LinkSpeed, LinkSpeedExt:
		return fmt.Sprint(v)
	case ib.MTU:
		if !v.IsValid() {
			return v.String()
		}
		return v.String() + " bytes"
	case DiagCode:
		return explainDiag(v)
	case CapabilityMask:
		return strings.Join(v.Names(), ", ")
	case CapabilityMask2:
		return strings.Join(v.Names(), ", ")
	}
	return ""
}

func secret(none bool, otherwise string) string {
	if none {
		return otherwise
	}
	return "a secret; ibwarden keys export writes it to a file"
}

func yes(v uint64) string {
	if v != 0 {
		return "yes"
	}
	return "no"
}

// Membership says what an entry of a P_Key table is.
func Membership(k ib.PKey) string {
	switch {
	case !k.IsValid():
		return "empty"
	case k.IsFull():
		return "full member of " + k.Base().String()
	}
	return "limited member of " + k.Base().String()
}

// WaitTime says how long a time code is, 4.096 us * 2^code.
func WaitTime(code ib.TimeValue) string {
	return code.Duration().Round(time.Nanosecond).String()
}

// Lifetime is WaitTime where codes above TimeValueFiniteMax mean that there is no limit.
func Lifetime(code ib.TimeValue) string {
	if code > TimeValueFiniteMax {
		return "no limit"
	}
	return WaitTime(code)
}

func explainDiag(c DiagCode) string {
	say := c.Meaning()
	if index, has := c.VendorDiagIndex(); has {
		return fmt.Sprintf("%s; see VendorDiag[%d]", say, index)
	}
	if code, has := c.VendorCode(); has {
		return fmt.Sprintf("%s; code %#x of its vendor", say, code)
	}
	return say
}

// exits are the ports that an entry of the multicast forwarding table leads to.
func exits(mask uint16, position int) string {
	var out []string
	for i := range PortsPerPosition {
		if mask>>i&1 != 0 {
			out = append(out, fmt.Sprint(position*PortsPerPosition+i))
		}
	}
	switch len(out) {
	case 0:
		return fmt.Sprintf("to none of ports %d to %d", position*PortsPerPosition, position*PortsPerPosition+PortsPerPosition-1)
	case 1:
		return "to port " + out[0]
	}
	return "to ports " + strings.Join(out, ", ")
}
