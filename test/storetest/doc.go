// Package storetest holds the contract tests for stores: fixed cases, and random calls
// that are compared with a model.
package storetest
