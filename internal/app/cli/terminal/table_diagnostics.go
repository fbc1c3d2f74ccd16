package terminal

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Diagnostics has a row for each end port that says it is not well.
func Diagnostics(f *observed.Fabric) Table {
	t := NewTable("node", "port", "guid", "state", "diag_code", "meaning", "vendor_code", "vendor_diag", "chain_ends")
	for _, p := range f.EndPorts() {
		d := p.Diagnosis()
		if d.Code.IsReady() {
			continue
		}
		var vendor, ends any
		if code, ok := d.Code.VendorCode(); ok {
			vendor = fmt.Sprintf("0x%03x", code)
		}
		if text := d.Ends(); text != "" {
			ends = text
		}
		blocks := make([]diagBlock, 0, len(d.Blocks))
		for i := range d.Blocks {
			b := &d.Blocks[i]
			blocks = append(blocks, diagBlock{b.Index, hex.EncodeToString(b.DiagData[:])})
		}
		t.Add(p.Node.Name(), p.Num, p.GUID, p.Info.PortState.String(), fmt.Sprintf("0x%04x", uint16(d.Code)), d.Code.Meaning(),
			vendor, blocks, ends)
	}
	return t
}

// diagBlock is a block of VendorDiag: its data as hexadecimal digits, two a byte.
type diagBlock struct {
	Index    uint16 `json:"index"`
	DiagData string `json:"diag_data"`
}

// String leaves out the zeros at the end, and prints text as text.
func (b diagBlock) String() string {
	data, _ := hex.DecodeString(b.DiagData)
	data = bytes.TrimRight(data, "\x00")
	if text := string(data); len(data) > 0 && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return fmt.Sprintf("[%d]%q", b.Index, text)
	}
	return fmt.Sprintf("[%d]%x", b.Index, data)
}
