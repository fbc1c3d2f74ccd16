package packet_test

import (
	"bytes"
	"fmt"
	"log"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// A file with one packet, for Wireshark.
func ExampleCaptureWriter() {
	datagram := packet.MADPacket{QP: ib.QP1, SLID: 1, DLID: 2, MAD: make([]byte, 256)}
	raw, err := datagram.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer // os.Create("fabric.pcap") in a program
	w, err := packet.NewCaptureWriter(&file)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.WritePacket(time.Unix(1_700_000_000, 0), raw); err != nil {
		log.Fatal(err)
	}
	fmt.Println(file.Len() > len(raw))
	// Output: true
}
