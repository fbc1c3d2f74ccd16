// Package qos works out how the two ends of each link talk to each other.
//
// In: a snapshot and Settings. Out: values entered in a observed.Desired, and a
// Fault for each port that announces a capability without meaning. Only links
// that are trained at both ends count; everything else is left alone.
//
// Links wants elements of PortInfo. Both ends of a link get what the weaker
// one can: the smaller MTUCap as NeighborMTU, the smaller VLCap as
// OperationalVLs. Switch ports get HOQLife and VLStallCount,
// switches LifeTimeValue: as made it may be 0, which is 4.096 us, and then a
// switch drops what waits for another packet.
//
// Lanes wants SLToVLMappingTables and VLArbitrationTables. Service level s
// takes lane s modulo the number of lanes, so that every level reaches a data
// lane; all lanes have the same share in the low-priority table, and the
// high-priority table is left as it is. A port that can only have one data
// lane has neither table, and none is wanted for it. A switch has a mapping
// for each pair of ports, so Lanes is by far the dearer of the two, and needed
// only where more than one service level is in use.
package qos
