package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// NoticeSize is the length of Notice in bytes.
const NoticeSize = 80

// Notice is a notice of subnet management and the GID of its issuer, as
// subnet administration reports it to subscribers.
type Notice struct {
	Notice    smp.Notice `ib:"0,512"`
	IssuerGID ib.GID     `ib:"512,128"`
}

// AttrNotice is the number of Notice.
const AttrNotice mad.AttributeID = 0x0002

var noticeFormat = add[Notice](Descriptor{ID: AttrNotice, Size: NoticeSize})

// ID is AttrNotice.
func (*Notice) ID() mad.AttributeID { return AttrNotice }

// String prints the fields; reserved bits are left out.
func (r Notice) String() string { return layout.Print(r) }

// UnmarshalBinary reads NoticeSize bytes.
func (r *Notice) UnmarshalBinary(data []byte) error { return noticeFormat.Unmarshal(r, data) }

// AppendBinary appends the record.
func (r *Notice) AppendBinary(b []byte) ([]byte, error) { return noticeFormat.Append(b, r) }
