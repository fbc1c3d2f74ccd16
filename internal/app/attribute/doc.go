// Package attribute reads one attribute of one device, by a name that a person gives it: of a
// running fabric, by a request of its own, or of a snapshot. It sets counters back to zero, and
// writes nothing else.
package attribute
