// Package scaletest measures how the time and the memory of bringing a fabric up grow with
// its size: of the manager, of the simulated fabric, and of what each consists of.
package scaletest
