// Package qos computes the link settings and virtual lanes: MTU, operational VLs,
// lifetimes, SL-to-VL mapping and VL arbitration.
//
// In: a snapshot and settings. Out: values entered in an observed.Desired, and a
// Fault for each port that announces an undefined capability. Only links
// that are trained at both ends count; all others are left alone.
//
// Links sets elements of PortInfo. Both ends of a link get the lesser capability: the
// smaller MTUCap as NeighborMTU, the smaller VLCap as
// OperationalVLs, at most what the settings allow. Switch ports get HOQLife and
// VLStallCount, switches LifeTimeValue: its factory value may be 0, which is 4.096 us,
// and then a switch drops packets that wait for another. Limit restricts a link to
// a width or speed, from its next training on.
//
// Lanes sets SLToVLMappingTables, VLArbitrationTables and VLHighLimit. Service
// level s gets the virtual lane of the settings, modulo the number of virtual lanes;
// both arbitration tables hold the entries of the settings for the virtual lanes that
// the link has. A port with only one data
// virtual lane has neither table.
//
// Where the settings give levels shares, each has a virtual lane of its own, and the
// low-priority table has entries that give it its share. Where routes need several virtual
// lanes for a level, its share is divided among them as pairs of hosts are whose packets take
// them at that port (Count). Where levels are enforced, the mapping for the input port of an
// end port drops the levels that it may not send on. A switch has a mapping
// for each pair of ports, so Lanes costs far more than Links. It is needed
// only where more than one service level is in use, or on request.
package qos
