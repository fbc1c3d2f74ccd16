// Package scaletest measures how the time and the memory of bringing a fabric up grow with
// its size: of the manager, of the simulated fabric, and of what each consists of.
//
// The files that begin with hardware compute how long bring-ups take on hardware: with the delays of
// devices, cables and programs (fabric.Hardware) on the simulated clock, so that the figure
// is the same in every run. The benchmark has OpenSM do the same, with the same delays on the
// same clock.
package scaletest
