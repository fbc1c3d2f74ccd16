// Package electiontest searches the states of several subnet managers for one that
// breaks a promise of the election or of the store's fencing.
//
// The managers are values of election.Engine, the code that runs in the manager. The
// search copies them, does every thing that could happen next to each copy, and goes on
// from every state that it has not seen before. docs/dev/election.md names the properties,
// what can happen, and what the search leaves out.
//
// The package contains only tests.
package electiontest
