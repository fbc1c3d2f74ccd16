// Package master combines a subnet manager and its subnet administration
// in one engine that a link drives. `ibwarden run` runs it, and a
// scenario starts it at a port of the simulated fabric.
package master
