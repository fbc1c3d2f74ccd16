package terminal

import "github.com/ibwarden/ibwarden/ib/umad"

// Devices has one row for each port of the adapters of this machine.
func Devices(devices []umad.Device) Table {
	t := NewTable("device", "port", "guid", "link_layer", "state", "physical_state", "lid", "sm_lid", "rate",
		"mad_file", "node_guid", "system_image_guid", "type", "board", "firmware")
	for _, d := range devices {
		for _, p := range d.Ports {
			t.Add(d.Name, p.Num, p.GUID, p.LinkLayer, p.State, p.Physical, p.LID, p.SMLID, p.Rate,
				p.MAD, d.NodeGUID, d.SystemImageGUID, d.Type, d.Board, d.Firmware)
		}
	}
	return t
}
