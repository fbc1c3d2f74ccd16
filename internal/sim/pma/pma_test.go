package pma_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
)

// ask puts one question to an agent; v holds the question's data and then the
// answer's.
func ask(t *testing.T, a *pma.Agent, method mad.Method, id mad.AttributeID, v pm.Attribute) mad.Status {
	t.Helper()
	m := pm.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion,
		Method: method, TransactionID: 77, AttributeID: id,
	}}
	b, err := v.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Data[:], b)
	if !a.Handle(&m) || m.Method != mad.MethodGetResp || m.TransactionID != 77 || m.AttributeID != id {
		t.Fatalf("%v of 0x%04x: answered %+v", method, id, m.Header)
	}
	if m.Status == mad.StatusOK {
		if err := v.UnmarshalBinary(m.Data[:]); err != nil {
			t.Fatal(err)
		}
	}
	return m.Status
}

func TestCountersInBothForms(t *testing.T) {
	a := pma.New(4, true)
	p := a.Port(3)
	for range 3 {
		p.Sent(72)
	}
	p.Received(20)
	p.SymbolErrorCounter = 70_000
	p.LinkDownedCounter = 255
	p.LocalLinkIntegrityErrors = 16
	p.ExcessiveBufferOverrunErrors = 15
	p.PortRcvData = 1 << 40

	v := pm.PortCounters{PortSelect: 3}
	if s := ask(t, a, mad.MethodGet, pm.AttrPortCounters, &v); s != 0 {
		t.Fatal(s)
	}
	want := pm.PortCounters{
		PortSelect: 3, PortXmitPkts: 3, PortXmitData: 216, PortRcvPkts: 1, PortRcvData: 0xFFFF_FFFF,
		SymbolErrorCounter: 0xFFFF, LinkDownedCounter: 255, LocalLinkIntegrityErrors: 15, ExcessiveBufferOverrunErrors: 15,
	}
	if v != want {
		t.Errorf("PortCounters\n%+v, want\n%+v", v, want)
	}
	x := pm.PortCountersExtended{PortSelect: 3, VL15Dropped: 5} // the question's rubbish does not come back
	if s := ask(t, a, mad.MethodGet, pm.AttrPortCountersExtended, &x); s != 0 {
		t.Fatal(s)
	}
	if wide := (pm.PortCountersExtended{
		PortSelect: 3, PortXmitPkts: 3, PortUnicastXmitPkts: 3, PortXmitData: 216,
		PortRcvPkts: 1, PortUnicastRcvPkts: 1, PortRcvData: 1 << 40,
		SymbolErrorCounter: 70_000, LinkDownedCounter: 255, LocalLinkIntegrityErrors: 16, ExcessiveBufferOverrunErrors: 15,
	}); x != wide {
		t.Errorf("PortCountersExtended\n%+v, want\n%+v", x, wide)
	}
}

func TestSetWritesWhatIsSelected(t *testing.T) {
	a := pma.New(2, false)
	p := a.Port(1)
	p.SymbolErrorCounter, p.PortXmitData, p.PortRcvData, p.PortXmitWait = 9, 1<<33, 8, 7
	v := pm.PortCounters{PortSelect: 1, CounterSelect: pm.SelectSymbolError | pm.SelectPortXmitData, PortRcvData: 3}
	if s := ask(t, a, mad.MethodSet, pm.AttrPortCounters, &v); s != 0 {
		t.Fatal(s)
	}
	if p.SymbolErrorCounter != 0 || p.PortXmitData != 0 || p.PortRcvData != 8 || p.PortXmitWait != 7 {
		t.Errorf("after the Set: %+v", *p)
	}
	if v.PortRcvData != 8 || v.PortXmitWait != 7 {
		t.Errorf("answer %+v: want what resulted", v)
	}
	v = pm.PortCounters{PortSelect: 1, CounterSelect2: pm.Select2PortXmitWait}
	if ask(t, a, mad.MethodSet, pm.AttrPortCounters, &v); p.PortXmitWait != 0 {
		t.Error("CounterSelect2 clears PortXmitWait: it did not")
	}
	p.VL15Dropped, p.QP1Dropped = 5, 6
	x := pm.PortCountersExtended{PortSelect: 1, CounterSelect2: 1 << 11} // of the counters of the newer form
	if ask(t, a, mad.MethodSet, pm.AttrPortCountersExtended, &x); p.VL15Dropped != 0 || p.QP1Dropped != 6 || p.PortRcvData != 8 {
		t.Errorf("after the Set of the newer form: %+v", *p)
	}
	// Each bit of each selection concerns the counter of its number, and no other.
	for bit := range 16 {
		*p = filled()
		v := pm.PortCounters{PortSelect: 1, CounterSelect: 1 << bit}
		ask(t, a, mad.MethodSet, pm.AttrPortCounters, &v)
		if got := zeroes(v); got != 1 {
			t.Errorf("CounterSelect bit %d clears %d counters: %+v", bit, got, v)
		}
	}
}

// filled has 1 in every counter.
func filled() pma.Port {
	var p pma.Port
	for _, name := range names {
		if err := p.Set("PortCounters", name, 1); err != nil {
			panic(err)
		}
	}
	return p
}

var names = []string{
	"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
	"PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors",
	"LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped", "PortXmitData", "PortRcvData",
	"PortXmitPkts", "PortRcvPkts",
}

// zeroes counts the counters of names that are 0.
func zeroes(v pm.PortCounters) int {
	zero := 0
	for _, n := range []uint64{
		uint64(v.SymbolErrorCounter), uint64(v.LinkErrorRecoveryCounter), uint64(v.LinkDownedCounter), uint64(v.PortRcvErrors),
		uint64(v.PortRcvRemotePhysicalErrors), uint64(v.PortRcvSwitchRelayErrors), uint64(v.PortXmitDiscards),
		uint64(v.PortXmitConstraintErrors), uint64(v.PortRcvConstraintErrors), uint64(v.LocalLinkIntegrityErrors),
		uint64(v.ExcessiveBufferOverrunErrors), uint64(v.VL15Dropped), uint64(v.PortXmitData), uint64(v.PortRcvData),
		uint64(v.PortXmitPkts), uint64(v.PortRcvPkts),
	} {
		if n == 0 {
			zero++
		}
	}
	return zero
}

func TestAllPorts(t *testing.T) {
	a := pma.New(3, false)
	for n := ib.PortNum(1); n <= 3; n++ {
		a.Port(n).PortXmitDiscards = uint64(n) * 30_000
	}
	v := pm.PortCounters{PortSelect: pm.AllPorts}
	ask(t, a, mad.MethodGet, pm.AttrPortCounters, &v)
	if v.PortXmitDiscards != 0xFFFF {
		t.Errorf("all ports: %d discards, want the most that fits", v.PortXmitDiscards)
	}
	v = pm.PortCounters{PortSelect: pm.AllPorts, CounterSelect: pm.SelectAll}
	if ask(t, a, mad.MethodSet, pm.AttrPortCounters, &v); a.Port(1).PortXmitDiscards+a.Port(3).PortXmitDiscards != 0 {
		t.Error("a Set of all ports leaves some")
	}
}

func TestDetailsAndNames(t *testing.T) {
	a := pma.New(1, false)
	p := a.Port(1)
	for _, c := range []struct{ attribute, name string }{
		{"portrcverrordetails", "portloopingerrors"}, {"PortXmitDiscardDetails", "PortSwHOQLifetimeLimitDiscards"},
		{"PortCountersExtended", "PortMulticastRcvPkts"}, {"PortCounters", "QP1Dropped"},
	} {
		if err := p.Set(c.attribute, c.name, 1<<20); err != nil {
			t.Error(err)
		}
	}
	r, d := pm.PortRcvErrorDetails{PortSelect: 1}, pm.PortXmitDiscardDetails{PortSelect: 1}
	ask(t, a, mad.MethodGet, pm.AttrPortRcvErrorDetails, &r)
	ask(t, a, mad.MethodGet, pm.AttrPortXmitDiscardDetails, &d)
	if r.PortLoopingErrors != 0xFFFF || d.PortSwHOQLifetimeLimitDiscards != 0xFFFF || p.PortMulticastRcvPkts != 1<<20 || p.QP1Dropped != 0xFFFF {
		t.Errorf("%+v\n%+v\n%+v", r, d, *p)
	}
	if p.Set("PortCounters", "CounterSelect", 1) == nil || p.Set("PortSamplesControl", "Tick", 1) == nil {
		t.Error("a counter that does not exist was set")
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		method mad.Method
		id     mad.AttributeID
		v      pm.Attribute
		want   mad.Status
	}{
		{"port 0 of a CA", mad.MethodGet, pm.AttrPortCounters, &pm.PortCounters{}, mad.StatusInvalidField},
		{"port past the last", mad.MethodGet, pm.AttrPortCountersExtended, &pm.PortCountersExtended{PortSelect: 3}, mad.StatusInvalidField},
		{"samples", mad.MethodGet, 0x0010, &pm.PortCounters{PortSelect: 1}, mad.StatusUnsupportedAttrib},
		{"Set of ClassPortInfo", mad.MethodSet, mad.AttrClassPortInfo, &mad.ClassPortInfo{}, mad.StatusUnsupportedAttrib},
		{"GetTable", mad.MethodGetTable, pm.AttrPortCounters, &pm.PortCounters{PortSelect: 1}, mad.StatusUnsupportedMethod},
		{"ClassPortInfo", mad.MethodGet, mad.AttrClassPortInfo, &mad.ClassPortInfo{}, mad.StatusOK},
	} {
		if got := ask(t, pma.New(2, false), c.method, c.id, c.v); got != c.want {
			t.Errorf("%s: status %v, want %v", c.name, got, c.want)
		}
	}
	m := pm.MAD{Header: mad.Header{BaseVersion: 1, ClassVersion: 2, Class: mad.ClassPerfMgt, Method: mad.MethodGet}}
	if a := pma.New(1, false); !a.Handle(&m) || m.Status != mad.StatusBadVersion || a.Handle(&m) {
		t.Errorf("class version 2: %+v; an answer must not be answered", m.Header)
	}
}

func FuzzHandle(f *testing.F) {
	for _, id := range []mad.AttributeID{mad.AttrClassPortInfo, pm.AttrPortCounters, pm.AttrPortCountersExtended, pm.AttrPortRcvErrorDetails, pm.AttrPortXmitDiscardDetails} {
		m := pm.MAD{Header: mad.Header{BaseVersion: 1, ClassVersion: 1, Class: mad.ClassPerfMgt, Method: mad.MethodSet, AttributeID: id}}
		for i := range m.Data {
			m.Data[i] = 0xFF
		}
		b, err := m.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	a := pma.New(36, true)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m pm.MAD
		if m.UnmarshalBinary(b) == nil && a.Handle(&m) {
			if _, err := m.AppendBinary(nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}
