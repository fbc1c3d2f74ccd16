package sma

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// FuzzHandle sends any two packets to each kind of device. Whatever they are,
// the agent keeps its promises: a packet is answered, or left as it was; what
// it answers to a Get can be read; and PortInfo keeps values that are legal.
func FuzzHandle(f *testing.F) {
	seed := func(method mad.Method, id mad.AttributeID, modifier uint32, data byte) []byte {
		p := mad.SMP{BaseVersion: 1, Class: mad.ClassSubnDirected, ClassVersion: 1, Method: method, AttributeID: id, AttributeModifier: modifier}
		for i := range p.Data {
			p.Data[i] = data
		}
		b, err := p.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	for _, id := range []mad.AttributeID{0x02, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x20, 0x30, 0x31} {
		f.Add(uint8(1), seed(mad.MethodSet, id, 0, 0x11), seed(mad.MethodGet, id, 0, 0))
		f.Add(uint8(2), seed(mad.MethodSet, id, 0x10001, 0xFF), seed(mad.MethodTrapRepress, id, 0x101, 1))
	}
	f.Fuzz(func(t *testing.T, through uint8, first, second []byte) {
		for _, c := range allConfigs() {
			d := start(t, c)
			d.address(1, 0x10)
			for i, data := range [][]byte{first, second} {
				var p mad.SMP
				if p.UnmarshalBinary(data) != nil {
					continue
				}
				before := p
				r := d.Handle(time.Duration(i), Ingress{Port: ib.PortNum(through)}, &p)
				if r.Verdict != Answered && p != before {
					t.Fatalf("verdict %d, and the packet changed", r.Verdict)
				}
				if r.Verdict == Answered && (p.Method != mad.MethodGetResp || p.TransactionID != before.TransactionID) {
					t.Fatalf("answer %+v", p)
				}
				checkPorts(t, d.Agent)
			}
			if at, ok := d.Deadline(); ok {
				d.Expire(at)
			}
		}
	})
}

func checkPorts(t *testing.T, a *Agent) {
	t.Helper()
	var data [mad.DataSize]byte
	for n := range a.ports {
		p := a.port(ib.PortNum(n))
		if p == nil {
			continue
		}
		i := &p.info
		if err := i.Encode(&data); err != nil {
			t.Fatalf("port %d: %v", n, err)
		}
		if p.kind.isEnd() && (!i.LID.IsUnicast() && i.LID != 0 || int(i.LID)%i.LMC.Count() != 0) {
			t.Fatalf("port %d: LID %v, LMC %d", n, i.LID, i.LMC)
		}
		if p.kind.hasLink() && (i.NeighborMTU > i.MTUCap || i.OperationalVLs > i.VLCap || i.OperationalVLs == 0 ||
			i.LinkWidthEnabled&^i.LinkWidthSupported != 0 || i.PortState < smp.PortDown || i.PortState > smp.PortActive) {
			t.Fatalf("port %d: %+v", n, i)
		}
		if len(p.keys) > a.pkeyCap(p) {
			t.Fatalf("port %d: %d keys", n, len(p.keys))
		}
	}
}
