// Package killtest kills `ibwarden run` between a request and its answer, and members of its store while it serves, and looks what is left: of what was acknowledged nothing is lost, nothing is half done, the audit log holds, and the fabric has what the store says.
//
// The fabric is simulated in the test's own process, so that it outlives the manager, and
// its tables are read there, past everything that ibwarden computes. What the partitions
// ought to be is said by a model that shares no code with the service.
//
// IBWARDEN_SOAK=1 makes the runs long, SOAK_SEED=n repeats the choices of one.
package killtest
