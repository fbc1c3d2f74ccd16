package ibsimd

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// firstPort is the port that a command is for: the one that it names, or that of a
// switch as a whole, or the first.
func firstPort(port int, isSwitch bool) ib.PortNum {
	switch {
	case port >= 0:
		return ib.PortNum(port)
	case isSwitch:
		return 0
	}
	return 1
}

// diag gives a port another DiagCode.
func (c *Console) diag(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	code, err := w.number("DiagCode", 0xFFFF)
	if err != nil {
		return err
	}
	return c.server.fabric.SetDiagCode(n.GUID, firstPort(port, n.Type == ib.NodeSwitch), smp.DiagCode(code))
}

// vendorDiag puts a block of diagnostic data into a port.
func (c *Console) vendorDiag(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	index, err := w.number("index", 0xFFFF)
	if err != nil {
		return err
	}
	next, err := w.number("next index", 0xFFFF)
	if err != nil {
		return err
	}
	block := smp.VendorDiag{NextIndex: uint16(next)}
	data := []byte(strings.TrimSpace(w.rest))
	if digits, ok := strings.CutPrefix(string(data), "0x"); ok {
		if data, err = hex.DecodeString(digits); err != nil {
			return fmt.Errorf("data 0x%s: %w", digits, err)
		}
	}
	if len(data) > len(block.DiagData) {
		return fmt.Errorf("%d octets of data, want at most %d", len(data), len(block.DiagData))
	}
	copy(block.DiagData[:], data)
	return c.server.fabric.SetVendorDiag(n.GUID, firstPort(port, n.Type == ib.NodeSwitch), uint16(index), block)
}
