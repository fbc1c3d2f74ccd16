package sweep

import (
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Complete is a Discovery that reads what options ask for (QoS, Audit, Aliases) of the
// ports of f, and enters it there. It follows no cable, writes nothing, and reads again
// none of what every discovery reads.
func Complete(w *transact.Window, o Options, f *observed.Fabric) *Discovery {
	o.Forwarding, o.Multicast, o.MulticastTop, o.ClearChange = false, false, 0, false
	d := newDiscovery(w, o, f)
	d.stage, d.completes = stageMet, true
	return d
}

// readMoreOf asks for the tables of a node that the options add to every discovery's.
func (d *Discovery) readMoreOf(n *observed.Node) {
	every := map[observed.Block]bool{}
	n.Tables(observed.Scope{}, func(b observed.Block) { every[b] = true })
	n.Tables(d.options.scope(), func(b observed.Block) {
		if !every[b] {
			d.readBlock(b)
		}
	})
}
