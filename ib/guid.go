package ib

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// NodeGUID identifies a device (CA, switch or router), not one of its ports.
type NodeGUID uint64

// PortGUID identifies an end port: a CA or router port, or a switch's port 0.
type PortGUID uint64

// GUIDLocalBit is the universal/local bit of an EUI-64; GUIDs that a subnet
// manager assigns have it set.
const GUIDLocalBit uint64 = 1 << 57

// String prints 0x and sixteen hexadecimal digits.
func (g NodeGUID) String() string { return fmt.Sprintf("0x%016x", uint64(g)) }

// String prints 0x and sixteen hexadecimal digits.
func (g PortGUID) String() string { return fmt.Sprintf("0x%016x", uint64(g)) }

// MarshalText prints the GUID as String does, for JSON and YAML.
func (g NodeGUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// MarshalText prints the GUID as String does, for JSON and YAML.
func (g PortGUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (g *NodeGUID) UnmarshalText(text []byte) error {
	v, err := ParseNodeGUID(string(text))
	if err == nil {
		*g = v
	}
	return err
}

// UnmarshalText reads what MarshalText prints.
func (g *PortGUID) UnmarshalText(text []byte) error {
	v, err := ParsePortGUID(string(text))
	if err == nil {
		*g = v
	}
	return err
}

// ParseNodeGUID reads a GUID: hexadecimal with 0x, or decimal.
func ParseNodeGUID(s string) (NodeGUID, error) {
	v, err := parseGUID("node GUID", s)
	return NodeGUID(v), err
}

// ParsePortGUID reads a GUID: hexadecimal with 0x, or decimal.
func ParsePortGUID(s string) (PortGUID, error) {
	v, err := parseGUID("port GUID", s)
	return PortGUID(v), err
}

func parseGUID(what, s string) (uint64, error) {
	base, digits := 10, s
	if rest, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		base, digits = 16, rest
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q: want 0x and up to 16 hexadecimal digits, or a decimal number", what, s)
	}
	return v, nil
}

// DefaultGIDPrefix is the subnet prefix of a subnet that was given no other.
const DefaultGIDPrefix uint64 = 0xFE80_0000_0000_0000

// GID is a global identifier: a 64-bit subnet prefix and a GUID, or a
// multicast group address.
type GID [16]byte

// MakeGID joins a subnet prefix and a port GUID.
func MakeGID(prefix uint64, port PortGUID) GID {
	var g GID
	for i := range 8 {
		g[i] = byte(prefix >> (56 - 8*i))
		g[8+i] = byte(uint64(port) >> (56 - 8*i))
	}
	return g
}

// Prefix is the upper half of the GID.
func (g GID) Prefix() uint64 { return be64(g[:8]) }

// PortGUID is the lower half of the GID.
func (g GID) PortGUID() PortGUID { return PortGUID(be64(g[8:])) }

// IsMulticast reports whether g is a multicast GID (first byte 0xFF).
func (g GID) IsMulticast() bool { return g[0] == 0xFF }

// String prints the GID as an IPv6 address.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// ParseGID reads a GID written as an IPv6 address.
func ParseGID(s string) (GID, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return GID{}, fmt.Errorf("GID %q: want an IPv6 address", s)
	}
	return GID(a.As16()), nil
}

func be64(b []byte) uint64 {
	var v uint64
	for _, x := range b[:8] {
		v = v<<8 | uint64(x)
	}
	return v
}
