// Package snapshot keeps what was read from a fabric, to be judged elsewhere
// or later: a observed.Fabric whole, when it was read, from where, how far the
// reading was meant to go, and what could not be read and why.
//
// The form is JSON, one document a line: a head, one line for each node in the
// order of discovery, and an end. It holds answers, octet for octet as devices
// gave them, and reading it back puts them through observed.Port.Absorb, the
// door that every answer takes: nothing gets into a Fabric this way that could
// not have come from a device, and every proof of it is the same as before. An
// answer that was doubted later, or recalled from an earlier pass, is marked
// stale and comes back as not read. In place of M_Keys and SM_Keys something else
// stands in a file that ibwarden snapshot writes (Conceal): a snapshot is shown to
// others, and a key opens a port.
//
//	{"ibwarden_snapshot": 1, "read_at": TIME, "source": TEXT, "asked": [TEXT...],
//	 "nodes": N, "self": {"node": GUID, "port": N}, "faults": [{"where": TEXT, "why": TEXT}...],
//	 "keys_concealed": BOOL, "sum": HEX}
//	{"node": {"info": OCTETS, "description": TEXT, "contested": BOOL,
//	  "ports": [{"port": N, "guid": GUID, "route": [N...], "peer": {"node": GUID, "port": N},
//	             "silent": BOOL, "forgets": [ELEMENT...]}...],
//	  "answers": [{"port": N, "attribute": NAME, "modifiers": [N...], "data": OCTETS, "stale": BOOL}...]}, "sum": HEX}
//	{"end": {"nodes": N}, "sum": HEX}
//
// OCTETS are base64, zeros at their end left out. The port of an answer is the
// one that was asked, 0 on a switch; a route that is there says that the port,
// or every port of the switch, was reached. Fields that are false or empty are
// left out.
//
// The version counts up when something that stands in a file comes to mean something
// else. A new attribute does not change it: files without that attribute stay as they
// were, and a reader that does not know it refuses the file and names it.
//
// Sum covers the line and all before it, so that a file that was cut short or
// changed is refused with the line where that shows. It guards against
// accidents: whoever forges a whole file can forge its sums.
package snapshot
