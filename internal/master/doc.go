// Package master joins a subnet manager and the administration of its subnet
// to one engine that a link drives: what `ibwarden run` runs, and what a
// scenario seats at a port of the simulated fabric.
package master
