// Package qos works out how the two ends of each link talk to each other.
//
// In: a snapshot and settings. Out: values entered in an observed.Desired, and a
// Fault for each port that announces a capability without meaning. Only links
// that are trained at both ends count; everything else is left alone.
//
// Links wants elements of PortInfo. Both ends of a link get what the weaker
// one can: the smaller MTUCap as NeighborMTU, the smaller VLCap as
// OperationalVLs, no more than the settings allow. Switch ports get HOQLife and
// VLStallCount, switches LifeTimeValue: as made it may be 0, which is 4.096 us,
// and then a switch drops what waits for another packet. Limit wants a link to be
// no wider or faster than something, from its next training on.
//
// Lanes wants SLToVLMappingTables, VLArbitrationTables and VLHighLimit. Service
// level s takes the virtual lane that the settings give it, modulo the number of virtual lanes;
// both arbitration tables hold the entries of the settings for the virtual lanes that the
// link has. A port that can only have one data
// virtual lane has neither table, and none is wanted for it. A switch has a mapping
// for each pair of ports, so Lanes is by far the dearer of the two, and needed
// only where more than one service level is in use, or when somebody asks for it.
package qos
