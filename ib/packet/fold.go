package packet

import "math/bits"

// folding has the constants of one CRC for carry-less multiplication. A CRC is the
// remainder of a polynomial, the first bit its highest power. Bytes that are followed by
// n more can be replaced by their product with the remainder of x^(8n), which is as long as the
// generator and not as the message: that is one multiplication for 64 bits, wherever they are.
//
// Both CRCs send the lowest bit of a byte first, so that all polynomials are reversed
// here: the lowest bit of a register is the highest power. The product of two reversed words
// of 64 bits is reversed in 127 bits, one power less than a register of 128 has; the
// constants have one power less for it.
//
// Both are computed as CRCs of 32 bits. A generator of 16 bits becomes one of 32 with x^16 as
// its other factor, and the remainder the same with x^16 as a factor, which is the lower half
// of a reversed register.
type folding struct {
	by128, by512, by2048 [2]uint64 // by so many bits: the lower and the upper half of 128
	by96, by64           uint64    // the upper part of 128 bits, and of 96
	quotient, generator  uint64    // of x^64 by the generator, reversed in 33 bits; the generator
}

// makeFolding makes the constants for a generator of degree 32.
func makeFolding(generator uint64) *folding {
	by := func(power int) uint64 { return bits.Reverse64(remainder(generator, power-1)) }
	pair := func(distance int) [2]uint64 { return [2]uint64{by(distance + 64), by(distance)} }
	return &folding{
		by128: pair(128), by512: pair(512), by2048: pair(2048), by96: by(96), by64: by(64),
		quotient: bits.Reverse64(quotient(generator)) >> 31, generator: bits.Reverse64(generator) >> 31,
	}
}

// remainder is that of x^power by a generator of degree 32.
func remainder(generator uint64, power int) uint64 {
	r := uint64(1)
	for range power {
		if r <<= 1; r>>32 != 0 {
			r ^= generator
		}
	}
	return r
}

// quotient is that of x^64 by a generator of degree 32.
func quotient(generator uint64) uint64 {
	q, r := uint64(0), uint64(1)
	for range 64 {
		q, r = q<<1, r<<1
		if r>>32 != 0 {
			q, r = q|1, r^generator
		}
	}
	return q
}

// The generators: that of Ethernet, and 0x100B times x^16.
var (
	icrcFolding = makeFolding(0x1_04C1_1DB7)
	vcrcFolding = makeFolding(0x1_100B << 16)
)
