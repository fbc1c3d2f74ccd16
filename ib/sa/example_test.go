package sa_test

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// A host asks subnet administration for one path to another.
func ExampleMAD() {
	want := sa.PathRecord{
		SGID:           ib.MakeGID(ib.DefaultGIDPrefix, 0x1001),
		DGID:           ib.MakeGID(ib.DefaultGIDPrefix, 0x1002),
		PathProperties: sa.PathProperties{NumbPath: 1, Reversible: true},
	}
	record, err := want.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	query := sa.MAD{
		Header: mad.Header{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
			Method: mad.MethodGet, AttributeID: want.ID(), TransactionID: 1,
		},
		ComponentMask: sa.PathRecordSGID | sa.PathRecordDGID | sa.PathRecordNumbPath | sa.PathRecordReversible,
	}
	copy(query.Data[:], record)
	bytes, err := query.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}

	// Who gets it decodes the record by its number.
	var got sa.MAD
	if err := got.UnmarshalBinary(bytes); err != nil {
		log.Fatal(err)
	}
	decoded, err := sa.Decode(got.AttributeID, got.Data[:])
	if err != nil {
		log.Fatal(err)
	}
	path := decoded.(*sa.PathRecord)
	fmt.Println(sa.AttributeName(got.AttributeID), path.SGID, "->", path.DGID, got.ComponentMask.Has(sa.PathRecordDGID))
	// Output: PathRecord fe80::1001 -> fe80::1002 true
}
