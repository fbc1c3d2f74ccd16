package smp_test

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// An answer is decoded by the number of its attribute. What is printed leaves out
// reserved bits.
func ExampleDecode() {
	var data [mad.DataSize]byte
	info := smp.SwitchInfo{LinearFDBCap: 49152, MulticastFDBCap: 4096, PartitionEnforcementCap: 32}
	if err := info.Encode(&data); err != nil {
		log.Fatal(err)
	}
	attribute, err := smp.Decode(smp.AttrSwitchInfo, data[:])
	if err != nil {
		log.Fatal(err)
	}
	s := attribute.(*smp.SwitchInfo)
	fmt.Println(smp.AttributeName(attribute.ID()), s.LinearFDBCap, s.PartitionEnforcementCap)
	_, err = smp.Decode(0xFF10, data[:])
	fmt.Println(err)
	// Output:
	// SwitchInfo 49152 32
	// vendor attribute 0xff10: no attribute of subnet management
}

// What there is to know of attributes: here those that nobody can write.
func ExampleAttributes() {
	for _, d := range smp.Attributes() {
		if !d.Access.CanSet() {
			fmt.Printf("0x%04x %s, %d bytes\n", uint16(d.ID), d.Name, d.Size)
		}
	}
	// Output:
	// 0x0010 NodeDescription, 64 bytes
	// 0x0011 NodeInfo, 40 bytes
	// 0x0030 VendorDiag, 64 bytes
}

// Block 1 of the P_Key table that switch port 5 checks packets by.
func ExamplePKeyModifier() {
	fmt.Printf("0x%08x\n", smp.PKeyModifier(5, 1))
	d, _ := smp.Describe(smp.AttrPKeyTable)
	fmt.Println(d.PerBlock, "keys a block,", d.Modifier.For(5, 1, 0) == smp.PKeyModifier(5, 1))
	table := smp.PKeyTable{Keys: [smp.PKeysPerBlock]ib.PKey{0: ib.PKeyDefaultLimited}}
	fmt.Println(table.Keys[0])
	// Output:
	// 0x00050001
	// 32 keys a block, true
	// 0x7fff
}
