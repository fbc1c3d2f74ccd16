// Package ports works out what end ports, single links and the ports between
// switches ought to hold by the settings of a policy.
//
// In: a snapshot and settings. Out: values entered in an observed.Desired, and
// warnings for people. What all links have in common is in package qos, and who is
// in which partition in package partition.
package ports
