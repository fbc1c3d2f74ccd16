package layout_test

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// attributes are the layouts of all attributes, by the names of their golden packets.
var attributes = map[string][]layout.Field{
	"NodeDescription":          of[*smp.NodeDescription](64),
	"NodeInfo":                 of[*smp.NodeInfo](64),
	"SwitchInfo":               of[*smp.SwitchInfo](64),
	"GUIDInfo":                 of[*smp.GUIDInfo](64),
	"PortInfo":                 of[*smp.PortInfo](64),
	"P_KeyTable":               of[*smp.PKeyTable](64),
	"SLtoVLMappingTable":       of[*smp.SLToVLMappingTable](64),
	"VLArbitrationTable":       of[*smp.VLArbitrationTable](64),
	"LinearForwardingTable":    of[*smp.LinearForwardingTable](64),
	"RandomForwardingTable":    of[*smp.RandomForwardingTable](64),
	"MulticastForwardingTable": of[*smp.MulticastForwardingTable](64),
	"SMInfo":                   of[*smp.SMInfo](64),
	"VendorDiag":               of[*smp.VendorDiag](64),
	"LedInfo":                  of[*smp.LEDInfo](64),
	"PortInfoExtended":         of[*smp.PortInfoExtended](64),
	"Notice64":                 notice[*smp.GIDDetails](),
	"Notice65":                 notice[*smp.GIDDetails](),
	"Notice66":                 notice[*smp.GIDDetails](),
	"Notice67":                 notice[*smp.GIDDetails](),
	"Notice68":                 notice[*smp.PathDetails](),
	"Notice69":                 notice[*smp.PathDetails](),
	"Notice128":                notice[*smp.LinkStateDetails](),
	"Notice129":                notice[*smp.PortDetails](),
	"Notice130":                notice[*smp.PortDetails](),
	"Notice131":                notice[*smp.PortDetails](),
	"Notice144":                notice[*smp.LocalChangeDetails](),
	"Notice145":                notice[*smp.SystemImageGUIDDetails](),
	"Notice256":                notice[*smp.BadMKeyDetails](),
	"Notice257":                notice[*smp.BadKeyDetails](),
	"Notice258":                notice[*smp.BadKeyDetails](),
	"Notice259":                notice[*smp.SwitchBadPKeyDetails](),

	"SA_ClassPortInfo":                  of[*mad.ClassPortInfo](mad.ClassPortInfoSize),
	"SA_InformInfo":                     of[*sa.InformInfo](sa.InformInfoSize),
	"SA_NodeRecord":                     of[*sa.NodeRecord](sa.NodeRecordSize),
	"SA_PortInfoRecord":                 of[*sa.PortInfoRecord](sa.PortInfoRecordSize),
	"SA_SLtoVLMappingTableRecord":       of[*sa.SLToVLMappingTableRecord](sa.SLToVLMappingTableRecordSize),
	"SA_SwitchInfoRecord":               of[*sa.SwitchInfoRecord](sa.SwitchInfoRecordSize),
	"SA_LinearForwardingTableRecord":    of[*sa.LinearForwardingTableRecord](sa.LinearForwardingTableRecordSize),
	"SA_RandomForwardingTableRecord":    of[*sa.RandomForwardingTableRecord](sa.RandomForwardingTableRecordSize),
	"SA_MulticastForwardingTableRecord": of[*sa.MulticastForwardingTableRecord](sa.MulticastForwardingTableRecordSize),
	"SA_SMInfoRecord":                   of[*sa.SMInfoRecord](sa.SMInfoRecordSize),
	"SA_LinkRecord":                     of[*sa.LinkRecord](sa.LinkRecordSize),
	"SA_GUIDInfoRecord":                 of[*sa.GUIDInfoRecord](sa.GUIDInfoRecordSize),
	"SA_ServiceRecord":                  of[*sa.ServiceRecord](sa.ServiceRecordSize),
	"SA_P_KeyTableRecord":               of[*sa.PKeyTableRecord](sa.PKeyTableRecordSize),
	"SA_PathRecord":                     of[*sa.PathRecord](sa.PathRecordSize),
	"SA_VLArbitrationTableRecord":       of[*sa.VLArbitrationTableRecord](sa.VLArbitrationTableRecordSize),
	"SA_MCMemberRecord":                 of[*sa.MCMemberRecord](sa.MCMemberRecordSize),
	"SA_TraceRecord":                    of[*sa.TraceRecord](sa.TraceRecordSize),
	"SA_InformInfoRecord":               of[*sa.InformInfoRecord](sa.InformInfoRecordSize),

	"PM_PortCounters":         of[*pm.PortCounters](pm.PortCountersSize),
	"PM_PortCountersExtended": of[*pm.PortCountersExtended](pm.PortCountersExtendedSize),
	"PM_PortRcvErrorDetails":  of[*pm.PortRcvErrorDetails](pm.PortRcvErrorDetailsSize),
}

func of[P any](size int) []layout.Field { return layout.Of[P]("x", size).Fields() }

// notice is that of a notice with the details that D points to.
func notice[D any]() (all []layout.Field) {
	for _, f := range of[*smp.Notice](64) {
		if f.Name != "x.Details" {
			all = append(all, f)
		}
	}
	for _, f := range of[D](smp.NoticeDetailsSize) {
		f.Bit += 80
		all = append(all, f)
	}
	return all
}

// TestGoldenPackets holds the fields, bit by bit, against those that the golden packets list: each bit is in
// one field, it is reserved in both or in neither, and fields begin and end where others do there.
func TestGoldenPackets(t *testing.T) {
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, v := range all {
		fields, is := attributes[v.Name]
		if !is {
			if v.MAD != nil && v.Name != "SA_MultiPathRecord" && !strings.HasPrefix(v.Name, "DR_NodeInfo") { // by hand; twice there
				t.Errorf("%s has no layout here", v.Name)
			}
			continue
		}
		known++
		size := 0
		for _, f := range fields {
			size = max(size, f.Bit+f.Bits)
		}
		named, edges, seen := make([]bool, size), map[int]bool{0: true}, make([]bool, size)
		for _, f := range v.Fields {
			edges[f.Bit], edges[f.Bit+f.Width] = true, true
			for bit := f.Bit; bit < f.Bit+f.Width; bit++ {
				named[bit] = !strings.HasPrefix(f.Name, "Reserved")
			}
		}
		for _, f := range fields {
			if !f.Reserved && (!edges[f.Bit] || !edges[f.Bit+f.Bits]) {
				t.Errorf("%s %s: no field has bits %d to %d in the golden packet", v.Name, f.Name, f.Bit, f.Bit+f.Bits-1)
			}
			for bit := f.Bit; bit < f.Bit+f.Bits; bit++ {
				if f.Reserved && named[bit] && strings.HasSuffix(f.Name, ".spare") {
					continue // a byte of which some bits are spare
				}
				if f.Name == "x.Redirect.HL" {
					seen[bit] = true // reserved in Redirect, but not in Trap, which is of the same type
					continue
				}
				if seen[bit] || f.Reserved == named[bit] {
					t.Errorf("%s %s: bit %d is in another field, or reserved in one place and not in the other", v.Name, f.Name, bit)
				}
				seen[bit] = true
			}
		}
		for bit, is := range seen {
			if !is {
				t.Errorf("%s: bit %d is in no field", v.Name, bit)
			}
		}
	}
	if known != len(attributes) {
		t.Errorf("%d golden packets, want %d", known, len(attributes))
	}
}
