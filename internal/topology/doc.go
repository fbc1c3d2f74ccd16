// Package topology represents a topology as a value: read from a file, written to one,
// generated, or built from a discovered fabric. It has nodes, the
// cables between their ports and what a file can preset (GUIDs, descriptions,
// vendor and device, LIDs, enabled link rates), but no tables.
//
// # Reading
//
// Read takes ibsim's netfile format and the output of ibnetdiscover, which is a
// subset of it. A file means the fabric that ibsim makes of it: the same GUIDs
// where the file gives none, the same order of nodes (the first is the default
// attach point), the same default rates. It differs on purpose in these points:
//
//   - Port GUIDs in parentheses count; ibsim gives every CA port NodeGUID + port
//     number. "switchguid=N(P)" gives a switch's port GUID P.
//   - The rate and the LID at the end of a router's port line count too.
//   - Options (w=, s=, e=) are read before "#" only, not in comments.
//   - Descriptions have up to 64 bytes, not 63.
//   - A blank between a remote id and its [port] makes no difference; ibsim
//     takes port 1.
//   - A record header that follows an unfinished record without a blank line is
//     read; an alias may be used before it is declared; long lines are read whole.
//   - "do" lines are kept in Netlist.Commands and never run; "include" is refused
//     unless the caller passes a function that opens files.
//   - FDR10 is read as QDR, the speed it is in the architecture's terms.
//
// Where ibsim reads the same text differently, Read returns a Warning. What
// is wrong in any reading (an id or GUID given twice, a port out of range or
// listed twice, a cable only one of its ends knows, a port cabled to itself, ends
// without a common width or speed) is a Fault. All faults are collected; if
// there is one, no Netlist is returned.
//
// # Writing
//
// WriteIbsim and WriteIbnetdiscover write the two formats. Reading either back
// gives the same fabric, which is what Canonical compares. Only the first keeps node
// ids: ibnetdiscover names nodes by GUID.
//
// # Generating
//
// Generate makes fat trees, tori, dragonfly+ and random fabrics from a
// one-line specification, and Demo makes the demonstration fabric. The same
// specification always gives the same Netlist.
//
// This package opens no file, reads no clock and keeps no state between calls.
package topology
