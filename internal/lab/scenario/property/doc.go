// Package property names the points in which the simulated devices of a story can
// differ from the usual ones: sizes of tables, capabilities, habits.
package property
