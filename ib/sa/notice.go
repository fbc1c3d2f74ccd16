package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// NoticeSize is the length of Notice in octets.
const NoticeSize = 80

// Notice is a notice of subnet management and the GID of who issued it, as
// subnet administration reports it to subscribers.
type Notice struct {
	Notice    smp.Notice
	IssuerGID ib.GID
}

// ID is AttrNotice.
func (*Notice) ID() mad.AttributeID { return AttrNotice }

// UnmarshalBinary reads NoticeSize octets.
func (r *Notice) UnmarshalBinary(data []byte) error { return decode(r, NoticeSize, data) }

// AppendBinary appends the record.
func (r *Notice) AppendBinary(b []byte) ([]byte, error) { return encode(r, NoticeSize, b) }

func (r *Notice) layout(c *coder) {
	c.attribute("Notice", &r.Notice, mad.DataSize)
	c.bytes(r.IssuerGID[:])
}
