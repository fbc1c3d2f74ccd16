package routes

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Guarded looks at what switches drop of what CA and router ports send, by its service level.
// sends are the levels on which an end port is to send. Stopped are those of these levels
// that a switch drops as they come in, Open the exits by which packets from an end port pass
// on some other level. Links that are not up do not count.
func Guarded(in *Input, sends func(end *observed.Port) SLs) (stopped []Drop, open []*observed.Port) {
	for _, n := range in.Fabric.Switches() {
		for i := range n.Ports {
			entry := &n.Ports[i]
			if !entry.FacesEnd() || !entry.IsTrained() {
				continue
			}
			set := sends(entry.Peer)
			for o := 1; o < len(n.Ports); o++ {
				out := &n.Ports[o]
				if o == i || !out.IsTrained() {
					continue
				}
				drops, passes := in.compare(out, entry.Num, set)
				stopped = append(stopped, drops...)
				if passes {
					open = append(open, out)
				}
			}
		}
	}
	return stopped, open
}

// compare holds the mapping of packets that come in by a port and leave by out against the
// levels that are to pass.
func (in *Input) compare(out *observed.Port, entry ib.PortNum, set SLs) (stopped []Drop, passes bool) {
	m := in.Lanes(out)
	table, vls := m.table(entry), in.VLs(out)
	for sl := range ib.SL(len(table)) {
		switch dropped := int(table[sl]) >= vls; {
		case set&SL(sl) == 0:
			passes = passes || !dropped
		case dropped && table[sl] == ib.VLManagement:
			stopped = append(stopped, Drop{Out: out, In: entry, SL: sl, VL: table[sl], VLs: vls})
		}
	}
	return stopped, passes
}
