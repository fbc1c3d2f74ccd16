package guest

import (
	"encoding/binary"
	"sync"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Lie is what an adapter says that is not so, for tests of what a manager makes of it.
type Lie struct {
	GUID ib.NodeGUID // of node and port; 0 for the right one
	// PKey is in the port's table after each Set of it, and in no answer; 0 for none.
	PKey ib.PKey
}

// Where a packet of subnet management has its MAD, and where the key is in a P_KeyTable that has room for
// 4: at the last place.
const (
	madAt  = packet.LRHSize + packet.BTHSize + packet.DETHSize
	lieAt  = madAt + mad.DataOffset + 2*3
	lieEnd = madAt + mad.Size + packet.ICRCSize + packet.VCRCSize
)

// liar changes what passes between a port and its cable.
type liar struct {
	key ib.PKey
	mu  sync.Mutex
	was uint16 // what the manager has written where the key is
}

// change changes a packet: the request of the first block of the P_KeyTable, or the answer. It does not
// change what it is given.
func (l *liar) change(p []byte, out bool) []byte {
	if len(p) != lieEnd || (*packet.LRH)(p).VL() != ib.VLManagement {
		return p
	}
	m := p[madAt:]
	method := mad.Method(m[3])
	if mad.AttributeID(binary.BigEndian.Uint16(m[16:])) != smp.AttrPKeyTable || out != (method == mad.MethodGetResp) || !out && method != mad.MethodSet {
		return p
	}
	p = append([]byte(nil), p...)
	l.mu.Lock()
	defer l.mu.Unlock()
	put := l.was
	if !out {
		l.was, put = binary.BigEndian.Uint16(p[lieAt:]), uint16(l.key)
	}
	binary.BigEndian.PutUint16(p[lieAt:], put)
	if packet.Seal(p) != nil {
		return nil // no packet
	}
	return p
}
