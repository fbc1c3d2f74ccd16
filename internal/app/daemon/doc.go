// Package daemon joins engines to fabrics: it opens what --fabric names, reads
// a fabric without writing to it (Read), and runs a subnet manager on it (Run),
// with the administration of the subnet beside it: hosts that ask get answers.
// A process that comes to a fabric which others can have managed waits for the
// Quarantine first. The engines are values; this package has the clock, the
// signals and the counting that they do without.
package daemon
