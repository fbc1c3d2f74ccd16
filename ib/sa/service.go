package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// ServiceRecordSize is the length of ServiceRecord in bytes.
const ServiceRecordSize = 176

// ServiceRecord is a service that a port offers.
type ServiceRecord struct {
	ServiceID     uint64    `ib:"0,64"`
	ServiceGID    ib.GID    `ib:"64,128"`
	ServicePKey   ib.PKey   `ib:"192,16"`
	ServiceLease  uint32    `ib:"224,32"` // seconds, ServiceLeaseForever without end
	ServiceKey    [16]byte  `ib:"256,128"`
	ServiceName   [64]byte  `ib:"384,512"` // UTF-8, filled up with NUL
	ServiceData8  [16]uint8 `ib:"896,128"`
	ServiceData16 [8]uint16 `ib:"1024,128"`
	ServiceData32 [4]uint32 `ib:"1152,128"`
	ServiceData64 [2]uint64 `ib:"1280,128"`

	reserved26 uint16 `ib:"208,16"`
}

// AttrServiceRecord is the number of ServiceRecord.
const AttrServiceRecord mad.AttributeID = 0x0031

var serviceRecordFormat = add[ServiceRecord](Descriptor{ID: AttrServiceRecord, Size: ServiceRecordSize})

// ID is AttrServiceRecord.
func (*ServiceRecord) ID() mad.AttributeID { return AttrServiceRecord }

// String prints the fields; reserved bits are left out.
func (r ServiceRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads ServiceRecordSize bytes.
func (r *ServiceRecord) UnmarshalBinary(data []byte) error {
	return serviceRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *ServiceRecord) AppendBinary(b []byte) ([]byte, error) {
	return serviceRecordFormat.Append(b, r)
}

// The components of ServiceRecord.
const (
	ServiceRecordServiceID ComponentMask = 1 << iota
	ServiceRecordServiceGID
	ServiceRecordServicePKey
	_ // reserved
	ServiceRecordServiceLease
	ServiceRecordServiceKey
	ServiceRecordServiceName
	ServiceRecordServiceData8N1
	ServiceRecordServiceData8N2
	ServiceRecordServiceData8N3
	ServiceRecordServiceData8N4
	ServiceRecordServiceData8N5
	ServiceRecordServiceData8N6
	ServiceRecordServiceData8N7
	ServiceRecordServiceData8N8
	ServiceRecordServiceData8N9
	ServiceRecordServiceData8N10
	ServiceRecordServiceData8N11
	ServiceRecordServiceData8N12
	ServiceRecordServiceData8N13
	ServiceRecordServiceData8N14
	ServiceRecordServiceData8N15
	ServiceRecordServiceData8N16
	ServiceRecordServiceData16N1
	ServiceRecordServiceData16N2
	ServiceRecordServiceData16N3
	ServiceRecordServiceData16N4
	ServiceRecordServiceData16N5
	ServiceRecordServiceData16N6
	ServiceRecordServiceData16N7
	ServiceRecordServiceData16N8
	ServiceRecordServiceData32N1
	ServiceRecordServiceData32N2
	ServiceRecordServiceData32N3
	ServiceRecordServiceData32N4
	ServiceRecordServiceData64N1
	ServiceRecordServiceData64N2
)

// ServiceLeaseForever in ServiceRecord.ServiceLease is a lease without end.
const ServiceLeaseForever uint32 = 0xFFFF_FFFF
