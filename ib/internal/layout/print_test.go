package layout

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

// inner, printed as a part of another.
type printedInner struct {
	PKey   ib.PKey
	hidden int
}

type printedSample struct {
	Count    uint16
	On       bool
	LID      ib.LID
	MKey     ib.MKey
	SMKey    ib.SMKey
	Data     [4]uint8
	Parts    []printedInner
	Numbers  [2]uint32
	reserved [2]uint8
}

// TestFields: exported fields by name, values as the types print themselves.
func TestFields(t *testing.T) {
	got := Print(printedSample{
		Count: 3, On: true, LID: 5, Data: [4]uint8{0x10, 0xA0}, Parts: []printedInner{{0x8001, 1}, {0x7FFF, 2}},
		Numbers: [2]uint32{1, 2}, reserved: [2]uint8{9, 9},
	})
	const want = "printedSample{Count:3 On:true LID:5 MKey:0 SMKey:0 Data:0x10a0 Parts:[printedInner{PKey:0x8001} printedInner{PKey:0x7fff}] Numbers:[1 2]}"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestKeysAreNotShown: not by their type, and not inside another structure.
func TestKeysAreNotShown(t *testing.T) {
	got := Print(struct{ In struct{ MKey ib.MKey } }{struct{ MKey ib.MKey }{0xC0FFEE}}) + Print(printedSample{MKey: 0xC0FFEE, SMKey: 0xC0FFEE})
	if n := strings.Count(got, "not shown"); n != 3 || strings.Contains(strings.ToLower(got), "c0ffee") {
		t.Errorf("%s", got)
	}
}
