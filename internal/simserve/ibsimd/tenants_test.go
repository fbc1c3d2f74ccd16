package ibsimd_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// part is what a port is in a partition.
type part uint8

const (
	outsider part = iota
	limited
	full
)

// tenancy is who is what in which partition, as the tests know it: a model of
// its own beside the managers'. The default partition is not listed: everybody
// is a limited member of it and the manager's port a full one.
type tenancy struct {
	bases []ib.PKeyBase
	parts []map[ib.PortGUID]part // of bases
}

// strangeBase is of a partition that no tenancy has.
const strangeBase ib.PKeyBase = 0x2222

// dealOut gives each port to one of the tenants, some as limited members, and
// lets half of them have storage in common with a server.
func dealOut(r *rand.Rand, ports []ib.PortGUID) tenancy {
	var y tenancy
	for i := range 2 + r.IntN(3) {
		y.bases = append(y.bases, ib.PKeyBase(0x11+0x101*i))
		y.parts = append(y.parts, map[ib.PortGUID]part{})
	}
	tenants := len(y.bases)
	storage := map[ib.PortGUID]part{}
	y.bases, y.parts = append(y.bases, 0x700), append(y.parts, storage)
	for i, g := range ports {
		p := full
		if r.IntN(4) == 0 {
			p = limited
		}
		y.parts[r.IntN(tenants)][g] = p
		switch {
		case i == 0:
			storage[g] = full
		case r.IntN(2) == 0:
			storage[g] = limited
		}
	}
	return y
}

// is what a port is in a partition.
func (y *tenancy) is(g, manager ib.PortGUID, base ib.PKeyBase) part {
	if base == ib.PKeyBaseDefault {
		if g == manager {
			return full
		}
		return limited
	}
	for i, b := range y.bases {
		if b == base {
			return y.parts[i][g]
		}
	}
	return outsider
}

// conf is the tenancy as a partitions.conf, a member a line: OpenSM cuts long
// lines.
func (y *tenancy) conf(ports []ib.PortGUID) string {
	var b strings.Builder
	b.WriteString("Default=0x7fff : ALL=limited, SELF=full ;\n")
	for i, base := range y.bases {
		var members []string
		for _, g := range ports {
			switch y.parts[i][g] {
			case full:
				members = append(members, fmt.Sprintf("%v=full", g))
			case limited:
				members = append(members, fmt.Sprintf("%v=limited", g))
			}
		}
		if len(members) > 0 {
			fmt.Fprintf(&b, "P%d=0x%x :\n%s ;\n", i, uint16(base), strings.Join(members, ",\n"))
		}
	}
	return b.String()
}
