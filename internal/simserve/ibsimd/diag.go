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
	var block smp.VendorDiag
	for rest := strings.TrimSpace(w.rest); rest != ""; rest = strings.TrimSpace(rest) {
		var name, value string
		if name, value, rest, err = setting(rest); err != nil {
			return err
		}
		switch strings.ToLower(name) {
		case "nextindex":
			next, err := (&words{rest: value}).number("NextIndex", 0xFFFF)
			if err != nil {
				return err
			}
			block.NextIndex = uint16(next)
		case "diagdata":
			data := []byte(value)
			if digits, ok := strings.CutPrefix(value, "0x"); ok {
				if data, err = hex.DecodeString(digits); err != nil {
					return fmt.Errorf("DiagData 0x%s: %w", digits, err)
				}
			}
			if len(data) > len(block.DiagData) {
				return fmt.Errorf("DiagData: %d bytes, want at most %d", len(data), len(block.DiagData))
			}
			copy(block.DiagData[:], data)
		default:
			return fmt.Errorf("field %q: want NextIndex or DiagData", name)
		}
	}
	return c.server.fabric.SetVendorDiag(n.GUID, firstPort(port, n.Type == ib.NodeSwitch), uint16(index), block)
}

// setting takes NAME=VALUE; quotation marks hold blanks in the value together and are no part
// of it.
func setting(text string) (name, value, rest string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.ContainsAny(name, " \t\"") {
		return "", "", "", fmt.Errorf("%q: want FIELD=VALUE", text)
	}
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		if value, rest, ok = strings.Cut(quoted, `"`); !ok {
			return "", "", "", fmt.Errorf("%s: no closing quotation mark", text)
		}
		return name, value, rest, nil
	}
	value, rest, _ = strings.Cut(value, " ")
	return name, value, rest, nil
}
