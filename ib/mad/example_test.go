package mad_test

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// A request along a directed route: out by port 1, then by port 7 of the switch that
// is there.
func ExampleSMP() {
	ask := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion,
		Method: mad.MethodGet, TransactionID: 5, AttributeID: 0x0011,
		HopCount: 2, InitialPath: [mad.PathSize]byte{1: 1, 2: 7},
	}
	bytes, err := ask.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes: %x ...\n", len(bytes), bytes[:24])

	var got mad.SMP
	if err := got.UnmarshalBinary(bytes); err != nil {
		log.Fatal(err)
	}
	got.MakeResponse(mad.StatusOK)
	fmt.Println(got.Method == mad.MethodGetResp, got.Direction, mad.Path{1, 7})
	// Output:
	// 256 bytes: 018101010000000200000000000000050011000000000000 ...
	// true true 0,1,7
}
