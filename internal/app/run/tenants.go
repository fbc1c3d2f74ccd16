package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// tenantsShown bounds the partitions in a message.
const tenantsShown = 5

// tenants refuses to manage a fabric without a policy where ports hold keys of
// partitions: it would take them all. Nothing but SubnGet is sent for that. Keys that another
// manager has just given by the policy in the store are no reason: that is there before they are.
func (m *manager) tenants() error {
	if m.Policy.File != "" || daemon.Fresh(m.Fabric) || m.service.Knows() {
		return nil
	}
	o := sweep.Options{Keys: m.Keys.keying(m.port).Shown(), MKey: m.port.MKey, Cables: m.Cables.List}
	read, err := daemon.ReadShowing(m.ctx, m.port.Link, o, terminal.ReadingProgress(m.stderr))
	if err != nil {
		return terminal.WithBad(err)
	}
	bases, ports, first := partitionsHeld(read.Fabric)
	if ports == 0 {
		return nil
	}
	if knows, err := m.service.Learns(m.ctx); err != nil {
		return terminal.WithBad(err)
	} else if knows {
		return nil
	}
	var list []string
	for i, b := range slices.Sorted(maps.Keys(bases)) {
		if i == tenantsShown {
			list = append(list, "...")
			break
		}
		list = append(list, b.String())
	}
	return terminal.WithMisuse(fmt.Errorf("the fabric holds %s (%s) at %s (for example %s), and no policy is given: "+
		"want --policy FILE, or --policy %s to leave every port the default partition only; nothing was written",
		terminal.Count(len(bases), "partition"), strings.Join(list, ", "), terminal.Count(ports, "port"), terminal.Plain(first), NoPolicy))
}

// partitionsHeld are the partitions in the tables of end ports, without the default
// partition, with the number of ports that hold any, and one of those.
func partitionsHeld(f *observed.Fabric) (bases map[ib.PKeyBase]bool, ports int, first *observed.Port) {
	bases = make(map[ib.PKeyBase]bool)
	for _, p := range f.EndPorts() {
		holds := false
		for _, k := range p.PKeys {
			if k.IsValid() && k.Base() != ib.PKeyBaseDefault {
				bases[k.Base()], holds = true, true
			}
		}
		if holds {
			if ports++; first == nil {
				first = p
			}
		}
	}
	return bases, ports, first
}
