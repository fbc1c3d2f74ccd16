// Package simtest tests the subnet manager on the simulated fabric and checks
// the devices themselves: the tables of their agents, the packets that
// reached them and their order. The manager's own view is compared with that and is
// not used as evidence.
//
// A world (world_test.go) is a fabric with a manager on it, driven as a program
// would drive it, through link/inproc. The expected result comes from a
// small model of partitions (tenants_test.go) and from walking the agents'
// forwarding tables (look_test.go); neither shares code with the manager.
//
// All inputs come from seeds, which failures print. The package contains only tests.
package simtest
