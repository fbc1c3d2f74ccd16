// Package hardwaretest computes how long bring-ups take on hardware: with the delays of
// devices, cables and programs (fabric.Hardware) on the simulated clock, so that the figure
// is the same in every run. The benchmark has OpenSM do the same, with the same delays on the
// same clock.
package hardwaretest
