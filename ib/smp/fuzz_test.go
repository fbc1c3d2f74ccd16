package smp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// fuzz checks one decoder: any input either is refused for its length or comes
// back unchanged, filled up with zeros. The seeds are the vectors of that name;
// those of Notice have a trap number behind it.
func fuzz(f *testing.F, name string) {
	var c codec
	for _, candidate := range codecs {
		if strings.TrimRight(candidate.name, "0123456789") == name {
			c = candidate
			v, err := vectors.Load(c.name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(v.Attribute)
			f.Add(v.MAD[mad.DataOffset : mad.DataOffset+mad.DataSize])
		}
	}
	if c.make == nil {
		f.Fatalf("no codec %s", name)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := c.make()
		if err := a.UnmarshalBinary(data); err != nil {
			if len(data) >= c.size && len(data) <= mad.DataSize {
				t.Fatal(err)
			}
			return
		}
		got, err := a.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Clone(data), make([]byte, mad.DataSize-len(data))...)
		if !bytes.Equal(got, want) {
			t.Fatalf("encoded\n%x, want\n%x", got, want)
		}
		if n, ok := a.(*Notice); ok {
			checkNoticeDetails(t, n)
		}
	})
}

func checkNoticeDetails(t *testing.T, n *Notice) {
	d, ok := n.TypedDetails()
	if !ok {
		return
	}
	var got [NoticeDetailsSize]byte
	if err := d.Encode(&got); err != nil || got != n.Details {
		t.Fatalf("%T encoded\n%x (%v), want\n%x", d, got, err, n.Details)
	}
}

func FuzzNotice(f *testing.F)                   { fuzz(f, "Notice") }
func FuzzNodeDescription(f *testing.F)          { fuzz(f, "NodeDescription") }
func FuzzNodeInfo(f *testing.F)                 { fuzz(f, "NodeInfo") }
func FuzzSwitchInfo(f *testing.F)               { fuzz(f, "SwitchInfo") }
func FuzzGUIDInfo(f *testing.F)                 { fuzz(f, "GUIDInfo") }
func FuzzPortInfo(f *testing.F)                 { fuzz(f, "PortInfo") }
func FuzzPortInfoExtended(f *testing.F)         { fuzz(f, "PortInfoExtended") }
func FuzzPKeyTable(f *testing.F)                { fuzz(f, "P_KeyTable") }
func FuzzSLToVLMappingTable(f *testing.F)       { fuzz(f, "SLtoVLMappingTable") }
func FuzzVLArbitrationTable(f *testing.F)       { fuzz(f, "VLArbitrationTable") }
func FuzzLinearForwardingTable(f *testing.F)    { fuzz(f, "LinearForwardingTable") }
func FuzzRandomForwardingTable(f *testing.F)    { fuzz(f, "RandomForwardingTable") }
func FuzzMulticastForwardingTable(f *testing.F) { fuzz(f, "MulticastForwardingTable") }
func FuzzSMInfo(f *testing.F)                   { fuzz(f, "SMInfo") }
func FuzzVendorDiag(f *testing.F)               { fuzz(f, "VendorDiag") }
func FuzzLEDInfo(f *testing.F)                  { fuzz(f, "LedInfo") }
