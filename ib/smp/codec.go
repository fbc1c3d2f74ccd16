package smp

import "github.com/ibwarden/ibwarden/ib/mad"

// Attribute is what every attribute of this package can do.
type Attribute interface {
	// ID is the attribute's number in the MAD header.
	ID() mad.AttributeID
	// UnmarshalBinary reads the attribute from its bytes.
	UnmarshalBinary(data []byte) error
	// AppendBinary appends mad.DataSize bytes to b; on an error b is
	// returned as it was.
	AppendBinary(b []byte) ([]byte, error)
	// Encode writes the whole of dst; on an error dst stays as it was.
	Encode(dst *[mad.DataSize]byte) error
}

// appendEncoded is the AppendBinary of every attribute.
func appendEncoded(b []byte, a Attribute) ([]byte, error) {
	n := len(b)
	b = append(b, make([]byte, mad.DataSize)...)
	if err := a.Encode((*[mad.DataSize]byte)(b[n:])); err != nil {
		return b[:n], err
	}
	return b, nil
}

// spare holds the bits of an attribute that no field has, at their places.
type spare [mad.DataSize]byte
