// Package subnettest builds snapshots of subnets for tests: fabrics as a sweep
// leaves them when all devices answer.
//
//	b := subnettest.New()
//	leaf := b.Switch(8, "leaf")
//	red, blue := b.Host(leaf, "red"), b.Host(leaf, "blue")
//	subnettest.SetPKeysThrough(red, 0x8010)
//	b.Route()
//	b.ManagedFrom(blue)
//
// Everything is read, in order and up: end ports have GUIDs and LIDs, cabled ports
// are Active, switch ports before hosts enforce partitions, P_Key tables are empty.
// A test then changes what it is about, on the nodes and ports themselves. What
// nodes answer to be able to do is set in the fields of the Builder before they are
// added.
//
// Nothing but tests uses this package. It computes routes itself, so that the tests
// of judges do not rely on the manager.
package subnettest
