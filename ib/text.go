package ib

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Every type of this package prints itself as text and reads that text again
// (encoding.TextMarshaler and TextUnmarshaler). JSON has the same text for keys,
// GUIDs, GIDs and for codes that stand for something else, and a number for LIDs,
// ports, virtual lanes and other plain numbers.

// numberText is the text of a plain number.
func numberText[T ~uint8 | ~uint16 | ~uint32](n T) []byte {
	return strconv.AppendUint(nil, uint64(n), 10)
}

// readNumber reads a number up to most, decimal or with 0x.
func readNumber[T ~uint8 | ~uint16 | ~uint32 | ~uint64](to *T, what string, text []byte, most T) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil || n > uint64(most) {
		return fmt.Errorf("%s %q: want a number from 0 to %d", what, text, uint64(most))
	}
	*to = T(n)
	return nil
}

// readJSON reads a number of a JSON document, which may stand in quotation marks:
// any that the type holds, as JSON does without this. Null changes nothing.
func readJSON[T ~uint8 | ~uint16 | ~uint32](to *T, what string, data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return readNumber(to, what, bytes.Trim(data, `"`), ^T(0))
}

// readCode reads what the String of a coded quantity prints: the words for one of
// its codes, or those for a number that is no code.
func readCode[T interface {
	~uint8
	String() string
}](to *T, what, want string, text []byte) error {
	for n := range 256 {
		if c := T(n); strings.EqualFold(c.String(), string(text)) {
			*to = c
			return nil
		}
	}
	return fmt.Errorf("%s %q: want %s", what, text, want)
}

// The largest values.
const (
	slMax        SL        = 15
	vlMax        VL        = 15
	timeValueMax TimeValue = 31
	qpnMax       QPN       = 0xFF_FFFF
)

// MarshalText prints the LID as String does.
func (l LID) MarshalText() ([]byte, error) { return numberText(l), nil }

// UnmarshalText reads a LID in decimal or, with 0x, in hexadecimal.
func (l *LID) UnmarshalText(text []byte) error { return readNumber(l, "LID", text, LIDPermissive) }

// MarshalJSON prints a number.
func (l LID) MarshalJSON() ([]byte, error) { return numberText(l), nil }

// UnmarshalJSON reads a number.
func (l *LID) UnmarshalJSON(data []byte) error { return readJSON(l, "LID", data) }

// MarshalText prints the count as a number.
func (m LMC) MarshalText() ([]byte, error) { return numberText(m), nil }

// UnmarshalText reads a number from 0 to LMCMax.
func (m *LMC) UnmarshalText(text []byte) error { return readNumber(m, "LMC", text, LMCMax) }

// MarshalJSON prints a number.
func (m LMC) MarshalJSON() ([]byte, error) { return numberText(m), nil }

// UnmarshalJSON reads a number.
func (m *LMC) UnmarshalJSON(data []byte) error { return readJSON(m, "LMC", data) }

// MarshalText prints the number of the port.
func (p PortNum) MarshalText() ([]byte, error) { return numberText(p), nil }

// UnmarshalText reads a number from 0 to 255.
func (p *PortNum) UnmarshalText(text []byte) error { return readNumber(p, "port", text, PortNone) }

// MarshalJSON prints a number.
func (p PortNum) MarshalJSON() ([]byte, error) { return numberText(p), nil }

// UnmarshalJSON reads a number.
func (p *PortNum) UnmarshalJSON(data []byte) error { return readJSON(p, "port", data) }

// MarshalText prints the number of the level.
func (s SL) MarshalText() ([]byte, error) { return numberText(s), nil }

// UnmarshalText reads a number from 0 to 15.
func (s *SL) UnmarshalText(text []byte) error { return readNumber(s, "service level", text, slMax) }

// MarshalJSON prints a number.
func (s SL) MarshalJSON() ([]byte, error) { return numberText(s), nil }

// UnmarshalJSON reads a number.
func (s *SL) UnmarshalJSON(data []byte) error { return readJSON(s, "service level", data) }

// MarshalText prints the number of the virtual lane.
func (v VL) MarshalText() ([]byte, error) { return numberText(v), nil }

// UnmarshalText reads a number from 0 to 15.
func (v *VL) UnmarshalText(text []byte) error { return readNumber(v, "virtual lane", text, vlMax) }

// MarshalJSON prints a number.
func (v VL) MarshalJSON() ([]byte, error) { return numberText(v), nil }

// UnmarshalJSON reads a number.
func (v *VL) UnmarshalJSON(data []byte) error { return readJSON(v, "virtual lane", data) }

// MarshalText prints the number of the queue pair.
func (q QPN) MarshalText() ([]byte, error) { return numberText(q), nil }

// UnmarshalText reads a number of 24 bits, in decimal or, with 0x, in hexadecimal.
func (q *QPN) UnmarshalText(text []byte) error { return readNumber(q, "queue pair", text, qpnMax) }

// MarshalJSON prints a number.
func (q QPN) MarshalJSON() ([]byte, error) { return numberText(q), nil }

// UnmarshalJSON reads a number.
func (q *QPN) UnmarshalJSON(data []byte) error { return readJSON(q, "queue pair", data) }

// MarshalText prints the code.
func (v TimeValue) MarshalText() ([]byte, error) { return numberText(v), nil }

// UnmarshalText reads a code from 0 to 31.
func (v *TimeValue) UnmarshalText(text []byte) error {
	return readNumber(v, "time value", text, timeValueMax)
}

// MarshalJSON prints the code as a number.
func (v TimeValue) MarshalJSON() ([]byte, error) { return numberText(v), nil }

// UnmarshalJSON reads the code as a number.
func (v *TimeValue) UnmarshalJSON(data []byte) error { return readJSON(v, "time value", data) }

// MarshalText prints the key as String does.
func (k QKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a number of 32 bits, with 0x or decimal.
func (k *QKey) UnmarshalText(text []byte) error { return readNumber(k, "Q_Key", text, ^QKey(0)) }

// MarshalText prints the key as String does.
func (k MKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a number of 64 bits, with 0x or decimal.
func (k *MKey) UnmarshalText(text []byte) error { return readNumber(k, "M_Key", text, ^MKey(0)) }

// MarshalText prints 0x and sixteen hexadecimal digits.
func (k SMKey) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%016x", uint64(k)), nil }

// UnmarshalText reads a number of 64 bits, with 0x or decimal.
func (k *SMKey) UnmarshalText(text []byte) error { return readNumber(k, "SM_Key", text, ^SMKey(0)) }

// MarshalText prints the GID as String does.
func (g GID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads a GID written as an IPv6 address.
func (g *GID) UnmarshalText(text []byte) error {
	v, err := ParseGID(string(text))
	if err == nil {
		*g = v
	}
	return err
}

// MarshalText prints the size in bytes as String does; a number that is no code
// reads back too.
func (m MTU) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (m *MTU) UnmarshalText(text []byte) error {
	return readCode(m, "MTU", "256, 512, 1024, 2048 or 4096 bytes", text)
}

// MarshalText prints the rate in Gb/s as String does; a number that is no code reads
// back too.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (r *Rate) UnmarshalText(text []byte) error {
	return readCode(r, "rate", "an InfiniBand rate in Gb/s, such as 2.5 or 100", text)
}

// MarshalText prints the kind of device as String does; a reserved value reads back
// too.
func (t NodeType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (t *NodeType) UnmarshalText(text []byte) error {
	return readCode(t, "node type", "CA, switch or router", text)
}
