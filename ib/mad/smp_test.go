package mad

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

func TestSMPRefused(t *testing.T) {
	whole := func(class Class) []byte {
		b := make([]byte, Size)
		b[1] = byte(class)
		return b
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "0 bytes"},
		{"short", whole(ClassSubnLID)[:Size-1], "255 bytes"},
		{"long", append(whole(ClassSubnLID), 0), "257 bytes"},
		{"SA", whole(ClassSubnAdm), "class 0x03"},
		{"performance", whole(ClassPerfMgt), "class 0x04"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := SMP{MKey: 7}
			err := p.UnmarshalBinary(test.data)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %s", err, test.want)
			}
			if p != (SMP{MKey: 7}) {
				t.Error("assigned in spite of the error")
			}
		})
	}
}

func TestSMPStatusWidth(t *testing.T) {
	p := SMP{Class: ClassSubnDirected, Status: 0x8000}
	b, err := p.AppendBinary([]byte("before"))
	if err == nil || !strings.Contains(err.Error(), "0x8000") || string(b) != "before" {
		t.Errorf("%q, %v", b, err)
	}
	buf := [Size]byte{1, 2, 3}
	want := buf
	if p.Encode(&buf) == nil || buf != want {
		t.Error("buf changed")
	}
	p.Class = ClassSubnLID // has 16 bits of status, and no direction
	p.Direction = true
	if b, err = p.AppendBinary(nil); err != nil || b[4] != 0x80 {
		t.Errorf("LID routed: %v", err)
	}
	p.Status = 0
	if b, err = p.AppendBinary(nil); err != nil || b[4] != 0 {
		t.Errorf("LID routed: direction written to the status (%v)", err)
	}
}

func TestSMPNoAlias(t *testing.T) {
	data := make([]byte, Size)
	data[1], data[DataOffset], data[OffsetInitialPath+1] = byte(ClassSubnDirected), 5, 6
	var p SMP
	if err := p.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if p.Data[0] != 5 || p.InitialPath[1] != 6 {
		t.Error("the packet sees later changes of the input")
	}
}

func TestMakeResponse(t *testing.T) {
	for _, class := range []Class{ClassSubnLID, ClassSubnDirected} {
		p := SMP{Class: class, Method: MethodSet, TransactionID: 9, AttributeID: 0x15, AttributeModifier: 3, HopPointer: 2, HopCount: 1}
		want := p
		want.Method, want.Status, want.Direction = MethodGetResp, StatusInvalidField, class == ClassSubnDirected
		p.MakeResponse(StatusInvalidField)
		if p != want {
			t.Errorf("class %#02x: %+v", class, p)
		}
	}
}

func TestSMPAllocation(t *testing.T) {
	data := make([]byte, Size)
	data[1] = byte(ClassSubnDirected)
	var p SMP
	var buf [Size]byte
	if n := testing.AllocsPerRun(10, func() {
		if p.UnmarshalBinary(data) != nil || p.Encode(&buf) != nil {
			t.Error("not coded")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHeaderShort(t *testing.T) {
	h := Header{TransactionID: 7}
	err := h.UnmarshalBinary(make([]byte, HeaderSize-1))
	if err == nil || !strings.Contains(err.Error(), "23 bytes, want 24") || h != (Header{TransactionID: 7}) {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestMethod(t *testing.T) {
	for method, want := range map[Method]string{
		0x01: "Get", 0x02: "Set", 0x03: "Send", 0x05: "Trap", 0x06: "Report", 0x07: "TrapRepress",
		0x12: "GetTable", 0x13: "GetTraceTable", 0x14: "GetMulti", 0x15: "Delete",
		0x81: "GetResp", 0x86: "ReportResp", 0x44: "method 0x44",
	} {
		if got := method.String(); got != want {
			t.Errorf("%#02x: %q, want %q", uint8(method), got, want)
		}
		if got := method.IsResponse(); got != (method >= 0x80) {
			t.Errorf("%#02x: IsResponse %v", uint8(method), got)
		}
	}
}

func TestStatus(t *testing.T) {
	for status, want := range map[Status]string{
		0x0000: "0x0000 (ok)",
		0x0001: "0x0001 (busy)",
		0x0002: "0x0002 (redirection required)",
		0x0004: "0x0004 (bad base or class version)",
		0x0008: "0x0008 (method not supported)",
		0x000C: "0x000c (method and attribute not supported together)",
		0x001C: "0x001c (invalid value in attribute or modifier)",
		0x0300: "0x0300 (class-specific status)",
		0x0010: "0x0010 (reserved status)",
	} {
		if got := status.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPathString(t *testing.T) {
	for want, path := range map[string]Path{"0": nil, "0,1,36": {1, 36}, "0,255": {ib.PortNone}} {
		if got := path.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
