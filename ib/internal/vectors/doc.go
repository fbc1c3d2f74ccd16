// Package vectors gives the tests of the codec packages their golden packets:
// one JSON file for each, embedded, made and checked against other
// implementations outside this module.
//
// Every vector is a whole packet from the local route header to the variant
// CRC. A management vector has its datagram and attribute cut out and lists
// the fields of the headers and of the attribute; a transport vector (named
// HDR_...) lists the fields of its headers only. The values exercise layouts,
// they are no legal settings. Only tests import this package.
package vectors
