// Package host is what whoever is root on a host of a story can do: change what
// the host's own device holds and says, send traps, pose as a subnet manager, and
// ask others' queue pairs 1. It reads statements to actions on a stage.
package host
