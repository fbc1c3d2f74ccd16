package fabricsim

import "github.com/ibwarden/ibwarden/ib"

// CreditsMissing is how many blocks of room the sending sides of links that are
// up believe to be taken, when nothing is under way.
func (f *Fabric) CreditsMissing() int {
	missing := 0
	for i := range f.ports {
		p := &f.ports[i]
		if p.data == nil || !p.up || p.num == 0 {
			continue
		}
		for vl := range 15 {
			missing += InputBlocks - p.data.out.Free(ib.VL(vl))
		}
	}
	return missing
}
