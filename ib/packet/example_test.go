package packet_test

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// A datagram from LID 1 to queue pair 5 of LID 2, and what a receiver reads in it.
func Example() {
	bytes, view, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, []byte("hello"))
	if err != nil {
		log.Fatal(err)
	}
	view.LRH.SetSLID(1)
	view.LRH.SetDLID(2)
	view.BTH.SetPKey(0x8001)
	view.BTH.SetDestQP(5)
	view.DETH.SetQKey(ib.QKey(0x1234))
	if err := packet.Seal(bytes); err != nil {
		log.Fatal(err)
	}

	got, err := packet.Parse(bytes)
	if err != nil {
		log.Fatal(err)
	}
	whole, err := packet.CheckICRC(bytes)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v to LID %v, queue pair %d: P_Key %v, %q\n", got.BTH.OpCode(), got.LRH.DLID(), got.BTH.DestQP(), got.BTH.PKey(), got.Payload)
	fmt.Println(len(bytes), "bytes, CRCs hold:", whole && packet.CheckVCRC(bytes))
	// Output:
	// UD SEND only to LID 2, queue pair 5: P_Key 0x8001, "hello"
	// 42 bytes, CRCs hold: true
}
