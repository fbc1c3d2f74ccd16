// Package storetest holds the contract tests for stores: fixed cases, and random calls
// that are compared with a model.
//
// # Clusters of etcd
//
// Cluster is a real etcd cluster of three members on loopback addresses; its methods do to it what
// happens to clusters.
//
// # States of the service
//
// State builds a state of the service for tests of what callers see: tenants with a port and
// a partition each, and members at every half step of consent.
package storetest
