// Package property names the settable properties of simulated devices: table sizes,
// capabilities, behaviour.
package property
