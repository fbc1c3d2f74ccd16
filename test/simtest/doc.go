// Package simtest holds the subnet manager against the simulated fabric and
// looks at the devices themselves: the tables of their agents, the packets that
// reached them and the order in which they came. What the manager believes of
// the fabric is compared with that and is no evidence of its own.
//
// A world (world_test.go) is a fabric with a manager on it, driven as a program
// would drive it, by way of transport/inproc. What should come out is worked out
// by a small model of partitions (tenants_test.go) and by walking the agents'
// forwarding tables (look_test.go); neither shares code with the manager.
//
// Everything is made from seeds, which failures name. The package has no code
// of its own.
package simtest
