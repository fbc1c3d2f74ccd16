package sa

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
)

func typeName(r Record) string { return fmt.Sprintf("%T", r) }

// fuzz checks one decoder: any input either is too short or comes back
// unchanged as far as the record reaches. The seed is the golden packet.
func fuzz(f *testing.F, record Record) {
	for _, c := range codecs {
		if typeName(c.make()) != typeName(record) {
			continue
		}
		seed := make([]byte, c.size)
		if c.vector != "" {
			v, err := vectors.Load(c.vector)
			if err != nil {
				f.Fatal(err)
			}
			seed = v.Attribute
		}
		f.Add(seed)
		f.Fuzz(func(t *testing.T, data []byte) {
			r := c.make()
			if err := r.UnmarshalBinary(data); err != nil {
				if _, lists := r.(*MultiPathRecord); len(data) >= c.size && !lists {
					t.Fatal(err)
				}
				return
			}
			size := c.size
			if m, ok := r.(*MultiPathRecord); ok {
				size = multiPathFixedSize + gidSize*(len(m.SGIDs)+len(m.DGIDs))
			}
			if got, err := r.AppendBinary(nil); err != nil || !bytes.Equal(got, filled(data[:size])) {
				t.Fatalf("encoded\n%x (%v), want\n%x", got, err, filled(data[:size]))
			}
		})
	}
}

func FuzzNotice(f *testing.F)                         { fuzz(f, new(Notice)) }
func FuzzInformInfo(f *testing.F)                     { fuzz(f, new(InformInfo)) }
func FuzzNodeRecord(f *testing.F)                     { fuzz(f, new(NodeRecord)) }
func FuzzPortInfoRecord(f *testing.F)                 { fuzz(f, new(PortInfoRecord)) }
func FuzzSLToVLMappingTableRecord(f *testing.F)       { fuzz(f, new(SLToVLMappingTableRecord)) }
func FuzzSwitchInfoRecord(f *testing.F)               { fuzz(f, new(SwitchInfoRecord)) }
func FuzzLinearForwardingTableRecord(f *testing.F)    { fuzz(f, new(LinearForwardingTableRecord)) }
func FuzzRandomForwardingTableRecord(f *testing.F)    { fuzz(f, new(RandomForwardingTableRecord)) }
func FuzzMulticastForwardingTableRecord(f *testing.F) { fuzz(f, new(MulticastForwardingTableRecord)) }
func FuzzSMInfoRecord(f *testing.F)                   { fuzz(f, new(SMInfoRecord)) }
func FuzzLinkRecord(f *testing.F)                     { fuzz(f, new(LinkRecord)) }
func FuzzGUIDInfoRecord(f *testing.F)                 { fuzz(f, new(GUIDInfoRecord)) }
func FuzzServiceRecord(f *testing.F)                  { fuzz(f, new(ServiceRecord)) }
func FuzzPKeyTableRecord(f *testing.F)                { fuzz(f, new(PKeyTableRecord)) }
func FuzzPathRecord(f *testing.F)                     { fuzz(f, new(PathRecord)) }
func FuzzVLArbitrationTableRecord(f *testing.F)       { fuzz(f, new(VLArbitrationTableRecord)) }
func FuzzMCMemberRecord(f *testing.F)                 { fuzz(f, new(MCMemberRecord)) }
func FuzzTraceRecord(f *testing.F)                    { fuzz(f, new(TraceRecord)) }
func FuzzMultiPathRecord(f *testing.F)                { fuzz(f, new(MultiPathRecord)) }
func FuzzInformInfoRecord(f *testing.F)               { fuzz(f, new(InformInfoRecord)) }

func FuzzMAD(f *testing.F) {
	for _, v := range saVectors(f) {
		f.Add(v.MAD)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m MAD
		if err := m.UnmarshalBinary(data); err != nil {
			if len(data) == mad.Size && data[1] == byte(mad.ClassSubnAdm) || m != (MAD{}) {
				t.Fatal(err)
			}
			return
		}
		if b, err := m.AppendBinary(nil); err != nil || !bytes.Equal(b, data) {
			t.Fatalf("encoded\n%x (%v), want\n%x", b, err, data)
		}
	})
}
