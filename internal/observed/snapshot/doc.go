// Package snapshot reads and writes snapshot files: an observed.Fabric, when and from
// where it was read, which attributes were requested, and what could not be read and
// why.
//
// The format is JSON, one document a line: a head, one line for each node in the
// order of discovery, and an end. It holds answers, byte for byte as devices
// gave them. Reading them uses observed.Port.Absorb, like every answer: a file cannot
// put anything into a Fabric that
// could not have come from a device, and every proof of it is the same as before. An
// answer that was discarded later, or kept from an earlier pass, is marked
// stale and reads back as not read. `ibwarden snapshot` replaces M_Keys and SM_Keys by
// pseudonyms (Conceal), since snapshots are shown to
// others and a key gives access to a port; with --anonymize it replaces names, GUIDs
// and P_Keys too (WriteAnonymized).
//
//	{"ibwarden_snapshot": 1, "read_at": TIME, "source": TEXT, "asked": [TEXT...],
//	 "nodes": N, "self": {"node": GUID, "port": N}, "faults": [{"where": TEXT, "why": TEXT}...],
//	 "keys_concealed": BOOL, "sum": HEX}
//	{"node": {"info": BYTES, "description": TEXT, "contested": BOOL,
//	  "ports": [{"port": N, "guid": GUID, "route": [N...], "peer": {"node": GUID, "port": N},
//	             "silent": BOOL, "forgets": [ELEMENT...]}...],
//	  "answers": [{"port": N, "attribute": NAME, "modifiers": [N...], "data": BYTES, "stale": BOOL}...]}, "sum": HEX}
//	{"end": {"nodes": N}, "sum": HEX}
//
// BYTES are base64, without the zeros at the end. The port of an answer is the
// one that was asked, 0 on a switch. A route means that the port,
// or every port of the switch, was reached. Fields that are false or empty are
// left out.
//
// The version increases when the meaning of a field
// changes. A new attribute does not change it: files without that attribute are
// unchanged, and a reader that does not know it refuses the file and names it.
//
// Sum covers the line and all lines before it, so that a file that was truncated or
// changed is refused, with the line. It protects against
// accidents, not forgery.
package snapshot
