// lfts*.go: reads and writes unicast forwarding tables as text, in the format of OpenSM's
// dump of them (opensm-lfts.dump), of ibroute, and of the file of OpenSM's routing engine
// `file`:
//
//	Unicast lids [0x0-0x8] of switch Lid 4 guid 0x0002c90000000010 ('leaf 1'):
//	0x0001 003 # Channel Adapter portguid 0x0002c90000000001: 'host 1'
//	1 lids dumped
//
// Names are for people; switches and ports are known by their GUIDs.

package observed

import (
	"github.com/ibwarden/ibwarden/ib"
)

// LFTs are the forwarding tables of switches.
type LFTs struct {
	Switches []LFTSwitch
	// Owners are the ports that have LIDs, as far as the text says it.
	Owners map[ib.LID]ib.PortGUID
}

// LFTSwitch is the forwarding table of one switch.
type LFTSwitch struct {
	GUID ib.NodeGUID
	// Line is where it begins in the text, from 1.
	Line    int
	Entries []LFTEntry
}

// LFTEntry is the exit port for a LID, 0 for the switch itself.
type LFTEntry struct {
	LID  ib.LID
	Port ib.PortNum
}
