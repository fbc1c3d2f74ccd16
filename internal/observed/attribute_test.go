package observed

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// without are the parts that descriptors lack, each with the reason. A part that is missing
// in a new attribute is either an oversight or belongs here.
var without = map[string]map[mad.AttributeID]string{
	"absorb": {},
	"unread": {
		smp.AttrNodeDescription:    "a description that is out of date harms nothing",
		smp.AttrSLToVLMappingTable: "what was read last is still the best guess; no verdict depends on it",
		smp.AttrVLArbitrationTable: "what was read last is still the best guess; no verdict depends on it",
	},
	"held": {
		smp.AttrNodeDescription: "a file has it in the node itself",
	},
	"tables": {
		smp.AttrNodeDescription: "the discovery reads it of every node that it finds",
		smp.AttrPortInfo:        "the discovery reads it to follow links",
		smp.AttrSwitchInfo:      "the discovery reads it before the ports of a switch",
	},
	"blocks": {
		smp.AttrNodeDescription: "managers do not write it",
		smp.AttrSMInfo:          "it belongs to the other manager",
		smp.AttrVendorDiag:      "managers do not write it",
		smp.AttrSwitchInfo:      "light sweeps read it for PortStateChange",
	},
}

// TestDescriptorsAreComplete: each attribute of a snapshot says how it is entered, marked
// as not read, written to a file, read by a sweep and read again, or is listed above with
// the reason why not.
func TestDescriptorsAreComplete(t *testing.T) {
	places := make(map[int]mad.AttributeID)
	for i, x := range attributes {
		name := smp.AttributeName(x.id)
		if _, ok := smp.Describe(x.id); !ok {
			t.Errorf("package smp does not describe %s", name)
		}
		if byID[x.id] != &attributes[i] {
			t.Errorf("%s is described twice", name)
		}
		for part, has := range map[string]bool{
			"absorb": x.absorb != nil, "unread": x.unread != nil, "held": x.held != nil,
			"tables": x.tables != nil, "blocks": x.blocks != nil,
		} {
			if reason := without[part][x.id]; has == (reason != "") {
				t.Errorf("%s: has %s: %t; reason to have none: %q", name, part, has, reason)
			}
		}
		if (x.place > 0) != (x.held != nil) {
			t.Errorf("%s has place %d in files", name, x.place)
		}
		if other, taken := places[x.place]; taken && x.place > 0 {
			t.Errorf("%s and %s have one place in files", name, smp.AttributeName(other))
		}
		places[x.place] = x.id
	}
	for part, list := range without {
		for id, reason := range list {
			if !Keeps(id) {
				t.Errorf("%s has a reason to have no %s (%s), and is not kept", smp.AttributeName(id), part, reason)
			}
		}
	}
	if !slices.IsSortedFunc(attributes, func(a, b kept) int {
		return cmp.Compare(order(a.ofSwitch()), order(b.ofSwitch()))
	}) {
		t.Error("the attributes of switches are not behind those of ports")
	}
}

func order(ofSwitch bool) int {
	if ofSwitch {
		return 1
	}
	return 0
}

// TestAnswersRebuild: what Answers tells of a node, entered into an empty one in that
// order, makes the same node; so every attribute that is held can be absorbed.
func TestAnswersRebuild(t *testing.T) {
	_, sw, ca := pair()
	fill := func(n *Node) {
		for i := range n.Ports {
			n.Ports[i].Reached = n.Switch != nil || i > 0
		}
	}
	fill(sw)
	fill(ca)
	sw.Switch.Info = smp.SwitchInfo{}
	told := make(map[mad.AttributeID]int)
	for _, n := range []*Node{sw, ca} {
		if n.Switch != nil {
			enter(t, &n.Ports[0], 0, &smp.SwitchInfo{LinearFDBCap: 128, RandomFDBCap: 32, MulticastFDBCap: 64, PartitionEnforcementCap: 32})
			enter(t, &n.Ports[0], 1, &smp.LinearForwardingTable{Ports: [smp.LIDsPerLinearBlock]ib.PortNum{3: 2}})
			enter(t, &n.Ports[0], 1, &smp.RandomForwardingTable{Entries: [smp.RandomEntriesPerBlock]smp.RandomEntry{2: {LID: 9, Valid: true, Port: 1}}})
			enter(t, &n.Ports[0], 1, &smp.MulticastForwardingTable{})
		}
		p := &n.Ports[1]
		selector := uint32(p.selector())
		enter(t, p, selector, &smp.PortInfo{GUIDCap: 9, VLCap: 2})
		enter(t, p, selector<<16, &smp.PKeyTable{Keys: [smp.PKeysPerBlock]ib.PKey{0xFFFF, 0x8001}})
		enter(t, p, selector|2<<16, &smp.VLArbitrationTable{})
		enter(t, p, selector, &smp.SLToVLMappingTable{})
		if n.Switch == nil {
			enter(t, p, 0, &smp.SMInfo{GUID: 7})
			enter(t, p, 1, &smp.GUIDInfo{GUIDs: [smp.GUIDsPerBlock]uint64{5: 0xA5}})
			enter(t, p, 3, &smp.VendorDiag{})
		}
		again := NewFabric().AddNode(n.Info)
		fill(again)
		n.Answers(func(b Block, v smp.Attribute, read bool) {
			told[b.Attribute]++
			p := &again.Ports[b.Port.Num]
			if v.ID() != b.Attribute {
				t.Errorf("%s is told as %s", smp.AttributeName(v.ID()), smp.AttributeName(b.Attribute))
			}
			if enter(t, p, b.Modifier, v); !read {
				p.MarkUnread(b.Attribute, b.Modifier)
			}
		})
		var got, want []Block
		var values, wanted []string
		collect := func(blocks *[]Block, values *[]string) func(Block, smp.Attribute, bool) {
			return func(b Block, v smp.Attribute, read bool) {
				b.Port = nil
				*blocks, *values = append(*blocks, b), append(*values, fmt.Sprintf("%x %t", encoded(t, v), read))
			}
		}
		again.Answers(collect(&got, &values))
		n.Answers(collect(&want, &wanted))
		if !slices.Equal(got, want) || !slices.Equal(values, wanted) {
			t.Errorf("%s: rebuilt as %v %v, want %v %v", n.Name(), got, values, want, wanted)
		}
	}
	for _, x := range attributes {
		if (told[x.id] > 0) != (x.held != nil) {
			t.Errorf("%s is told %d times", smp.AttributeName(x.id), told[x.id])
		}
	}
}

func enter(t *testing.T, p *Port, modifier uint32, v smp.Attribute) {
	t.Helper()
	if err := p.Absorb(v.ID(), modifier, encoded(t, v)); err != nil {
		t.Fatal(err)
	}
}
