// Package daemon runs engines on fabrics: it opens what --fabric names, reads
// a fabric without writing to it (Read), and runs the subnet manager with subnet
// administration on it (Run). A process that takes over a fabric that another manager
// may have configured waits for the
// Quarantine first. The engines are values; this package adds the clock, the
// signals and the counters.
package daemon
