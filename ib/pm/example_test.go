package pm_test

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
)

// A request for the counters of port 3, and what its answer says.
func ExampleDecode() {
	ask := pm.PortCounters{PortSelect: 3}
	request := pm.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion,
		Method: mad.MethodGet, AttributeID: ask.ID(),
	}}
	data, err := ask.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	copy(request.Data[:], data)
	bytes, err := request.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(bytes), "bytes")

	answer := pm.PortCounters{PortSelect: 3, PortXmitConstraintErrors: 2, PortXmitData: 1000}
	if data, err = answer.AppendBinary(nil); err != nil {
		log.Fatal(err)
	}
	attribute, err := pm.Decode(request.AttributeID, data)
	if err != nil {
		log.Fatal(err)
	}
	counters := attribute.(*pm.PortCounters)
	fmt.Println(counters.PortXmitConstraintErrors, "packets refused for their key,", 4*counters.PortXmitData, "bytes sent")
	// Output:
	// 256 bytes
	// 2 packets refused for their key, 4000 bytes sent
}
