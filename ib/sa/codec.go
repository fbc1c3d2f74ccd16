package sa

import "github.com/ibwarden/ibwarden/ib/mad"

// Record is what every record of this package can do.
type Record interface {
	// ID is the record's number in the MAD header.
	ID() mad.AttributeID
	// UnmarshalBinary reads the record from the start of data.
	UnmarshalBinary(data []byte) error
	// AppendBinary appends the record to b, filled up to a multiple of 8
	// bytes; on an error b is returned as it was.
	AppendBinary(b []byte) ([]byte, error)
}

// offsetUnit is the unit of MAD.AttributeOffset in bytes.
const offsetUnit = 8
