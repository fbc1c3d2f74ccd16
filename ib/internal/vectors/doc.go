// Package vectors holds the golden packets for the tests of the codec packages: one
// embedded JSON file each, checked against independent implementations.
//
// Every vector is a whole packet from the local route header to the variant
// CRC. A management vector also has its datagram and attribute as separate bytes,
// and lists the fields of the headers and of the attribute; a transport vector
// (named HDR_...) lists the fields of its headers only. The values exercise layouts
// and are not legal settings. Only tests import this package.
package vectors
