package ibsimd

import (
	"fmt"
	"net/netip"
	"strconv"
)

// namespace says how the sockets of a simulator are called.
type namespace struct {
	base string // of local names
	// remote is the control socket's address when it serves UDP; the data
	// sockets have the ports that follow.
	remote netip.AddrPort
	udp    bool
}

// DefaultSocket is the base of the socket names when none is given.
const DefaultSocket = "sim"

// maxBase is what a base may have of the 107 bytes of a name: the longest
// ending has some 15.
const maxBase = 80

// newNamespace checks names: a base for local sockets, or an address and port.
func newNamespace(base, udp string) (namespace, error) {
	if udp != "" {
		at, err := netip.ParseAddrPort(udp)
		if err != nil || !at.Addr().Is4() {
			return namespace{}, fmt.Errorf("UDP address %q: want an IPv4 address and a port, as 127.0.0.1:7070", udp)
		}
		if last := int(at.Port()) + maxClients; at.Port() == 0 || last > 0xFFFF {
			return namespace{}, fmt.Errorf("UDP port %d: want 1 to %d, since the %d that follow are used too", at.Port(), 0xFFFF-maxClients, maxClients)
		}
		return namespace{remote: at, udp: true}, nil
	}
	if base == "" {
		base = DefaultSocket
	}
	if len(base) > maxBase {
		return namespace{}, fmt.Errorf("socket name of %d bytes: want at most %d", len(base), maxBase)
	}
	return namespace{base: base}, nil
}

func (n namespace) control() DgramAddress { return n.at("ctl", 0) }

// out is the data socket of client i.
func (n namespace) out(i int) DgramAddress { return n.at("out"+strconv.Itoa(i), 1+uint16(i)) }

func (n namespace) at(name string, port uint16) DgramAddress {
	if n.udp {
		return Internet(n.remote.Addr(), n.remote.Port()+port)
	}
	return Abstract(n.base + ":" + name)
}

// in is the data socket of a client that sent a connect request from its
// control socket with this number in it.
func (n namespace) in(from *DgramAddress, id uint32) DgramAddress {
	if n.udp {
		return Internet(from.IPv4(), uint16(id))
	}
	return Abstract(n.base + ":in" + strconv.FormatUint(uint64(id), 10))
}
