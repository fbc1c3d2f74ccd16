package smp

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// NodeDescription is a device's text about itself: UTF-8, filled up with NUL;
// a text of 64 bytes has no NUL.
type NodeDescription struct {
	NodeString [mad.DataSize]byte `ib:"0,512"`
}

// AttrNodeDescription is the number of NodeDescription.
const AttrNodeDescription mad.AttributeID = 0x0010

var nodeDescriptionFormat = add[NodeDescription](Descriptor{ID: AttrNodeDescription, Size: mad.DataSize, Access: AccessGet, Modifier: ModifierNone, Of: OfNode})

// ID is AttrNodeDescription.
func (*NodeDescription) ID() mad.AttributeID { return AttrNodeDescription }

// UnmarshalBinary reads 64 bytes.
func (d *NodeDescription) UnmarshalBinary(data []byte) error {
	return nodeDescriptionFormat.Unmarshal(d, data)
}

// Encode writes the 64 bytes; it cannot fail.
func (d *NodeDescription) Encode(dst *[mad.DataSize]byte) error {
	return nodeDescriptionFormat.Encode(d, dst[:])
}

// AppendBinary appends 64 bytes.
func (d *NodeDescription) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, d) }

// String is the text up to the first NUL, what is not UTF-8 in it replaced.
func (d *NodeDescription) String() string {
	text, _, _ := bytes.Cut(d.NodeString[:], []byte{0})
	return strings.ToValidUTF8(string(text), string(utf8.RuneError))
}

// SetString takes s as the text. It must be UTF-8 without NUL and of at most
// 64 bytes.
func (d *NodeDescription) SetString(s string) error {
	switch {
	case len(s) > mad.DataSize:
		return fmt.Errorf("NodeDescription: text of %d bytes, want at most %d", len(s), mad.DataSize)
	case !utf8.ValidString(s):
		return fmt.Errorf("NodeDescription: text %q is not UTF-8", s)
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("NodeDescription: text %q holds a NUL", s)
	}
	d.NodeString = [mad.DataSize]byte{}
	copy(d.NodeString[:], s)
	return nil
}
