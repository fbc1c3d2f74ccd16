package ib_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib"
)

// Two ports may talk when their keys are of one partition, and one of the two at
// least is a full member.
func ExamplePKey_Matches() {
	red := ib.PKeyBase(0x0010)
	fmt.Println(red.Full().Matches(red.Full()))
	fmt.Println(red.Limited().Matches(red.Full()))
	fmt.Println(red.Limited().Matches(red.Limited()))
	fmt.Println(red.Full().Matches(ib.PKeyBase(0x0011).Full()))
	// Output:
	// true
	// true
	// false
	// false
}

func ExampleParsePortGUID() {
	guid, err := ib.ParsePortGUID("0x0002c9030012abcd")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(guid, ib.MakeGID(ib.DefaultGIDPrefix, guid))
	// Output: 0x0002c9030012abcd fe80::2:c903:12:abcd
}

// Values print themselves as text and read it again, in JSON too.
func ExampleMTU() {
	type port struct {
		LID  ib.LID
		PKey ib.PKey
		MTU  ib.MTU
		Rate ib.Rate
	}
	document, err := json.Marshal(port{LID: 17, PKey: 0x8010, MTU: ib.MTU2048, Rate: 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(document))
	var back port
	if err := json.Unmarshal([]byte(`{"MTU":"4096","Rate":"2.5"}`), &back); err != nil {
		log.Fatal(err)
	}
	fmt.Println(back.MTU.Bytes(), "bytes, code", uint8(back.MTU), "and rate code", uint8(back.Rate))
	// Output:
	// {"LID":17,"PKey":"0x8010","MTU":"2048","Rate":"10"}
	// 4096 bytes, code 5 and rate code 2
}

// A number of 4.096 microseconds times two to its power.
func ExampleTimeValue() {
	fmt.Println(ib.TimeValue(0).Duration(), ib.TimeValue(18).Duration())
	// Output: 4.096µs 1.073741824s
}
