package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// NoticeSize is the length of Notice in bytes.
const NoticeSize = 80

// Notice is a notice of subnet management and the GID of its issuer, as
// subnet administration reports it to subscribers.
type Notice struct {
	Notice    smp.Notice
	IssuerGID ib.GID
}

// AttrNotice is the number of Notice.
const AttrNotice mad.AttributeID = 0x0002

var _ = add(Descriptor{ID: AttrNotice, Name: "Notice", Size: NoticeSize, New: func() Record { return new(Notice) }})

// ID is AttrNotice.
func (*Notice) ID() mad.AttributeID { return AttrNotice }

// String prints the fields; reserved bits are left out.
func (r Notice) String() string { return show.Fields(r) }

// UnmarshalBinary reads NoticeSize bytes.
func (r *Notice) UnmarshalBinary(data []byte) error { return decode(r, NoticeSize, data) }

// AppendBinary appends the record.
func (r *Notice) AppendBinary(b []byte) ([]byte, error) { return encode(r, NoticeSize, b) }

func (r *Notice) layout(c *coder) {
	c.attribute("Notice", &r.Notice, mad.DataSize)
	c.bytes(r.IssuerGID[:])
}
