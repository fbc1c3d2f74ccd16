// This file implements `ibwarden device report`: what each kind of device answers.

package look

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// ReportCommand returns the command; its arguments are those of NetCommand.
func ReportCommand(add func(*cobra.Command), read func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error), help string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "report", Short: "Show what each kind of device answers, to be sent in", Args: cobra.NoArgs,
		Long: `Show what each kind of device in a fabric answers: a column for each type, vendor, device
and revision, with the attributes that were answered and those that were not, the
fields that did not keep what was written (known to a service: --server), and limits.
No name, GUID or key is in it. Firmware is not readable in the fabric: add it by hand
(of this machine's adapters: ibwarden show adapters). Only SubnGet is sent.

` + help,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := read(c, sweep.Options{Forwarding: true, QoS: true, Audit: true, Multicast: true})
			if err != nil {
				return err
			}
			if err := DeviceReport(s).Print(c.OutOrStdout(), asJSON); err != nil {
				return terminal.WithBad(err)
			}
			if n := len(s.Faults); n > 0 {
				return terminal.WithBad(fmt.Errorf("%s could not be read", terminal.Count(n, "place")))
			}
			return nil
		},
	}
	add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// deviceKind is what devices of one kind have in common.
type deviceKind struct {
	info                       smp.NodeInfo // without what differs between devices of the kind
	count                      int
	answered, missing, forgets map[string]bool
	limits                     map[string]bool
}

// DeviceKinds are the kinds of device in a fabric, ascending by type, vendor, device and revision.
type DeviceKinds []*deviceKind

// DeviceReport finds what each kind of device answered.
func DeviceReport(s *snapshot.Snapshot) DeviceKinds {
	asked := func(what string) bool { return slices.Contains(s.Asked, what) }
	scope := observed.Scope{
		Forwarding: asked(snapshot.AskedForwarding), QoS: asked(snapshot.AskedQoS),
		Audit: asked(snapshot.AskedAudit), Multicast: asked(snapshot.AskedMulticast),
	}
	kinds := map[smp.NodeInfo]*deviceKind{}
	for _, n := range s.Fabric.Nodes {
		i := smp.NodeInfo{NodeType: n.Info.NodeType, VendorID: n.Info.VendorID, DeviceID: n.Info.DeviceID, Revision: n.Info.Revision, NumPorts: n.Info.NumPorts}
		k := kinds[i]
		if k == nil {
			k = &deviceKind{info: i, answered: map[string]bool{}, missing: map[string]bool{}, forgets: map[string]bool{}, limits: map[string]bool{}}
			kinds[i] = k
		}
		k.add(n, scope)
	}
	return slices.SortedFunc(maps.Values(kinds), func(a, b *deviceKind) int {
		x, y := &a.info, &b.info
		return cmp.Or(cmp.Compare(x.NodeType, y.NodeType), cmp.Compare(x.VendorID, y.VendorID), cmp.Compare(x.DeviceID, y.DeviceID),
			cmp.Compare(x.Revision, y.Revision), cmp.Compare(x.NumPorts, y.NumPorts))
	})
}

// Print writes a column for each kind, or with asJSON one document with a row for each.
func (list DeviceKinds) Print(w io.Writer, asJSON bool) error {
	t := terminal.NewTable("type", "vendor_id", "device_id", "revision", "ports", "devices", "answered", "missing", "not_kept", "limits")
	if !asJSON {
		return list.matrix().Print(w, "", false)
	}
	for _, k := range list {
		i := &k.info
		t.Add(i.NodeType.String(), vendor(i), device(i), revision(i), i.NumPorts, k.count,
			namesIn(k.answered), namesIn(k.missing), namesIn(k.forgets), namesIn(k.limits))
	}
	return t.Print(w, "devices", true)
}

func vendor(i *smp.NodeInfo) string   { return fmt.Sprintf("0x%06x", i.VendorID) }
func device(i *smp.NodeInfo) string   { return fmt.Sprintf("0x%04x", i.DeviceID) }
func revision(i *smp.NodeInfo) string { return fmt.Sprintf("0x%x", i.Revision) }

// matrix has a column for each kind, and a row for each thing that one of them answers, does
// not keep, or is limited in.
func (list DeviceKinds) matrix() terminal.Table {
	head := []string{"attribute"}
	attributes, limits, forgets := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, k := range list {
		head = append(head, k.info.NodeType.String())
		maps.Copy(attributes, k.answered)
		maps.Copy(attributes, k.missing)
		maps.Copy(forgets, k.forgets)
		for l := range k.limits {
			name, _, _ := strings.Cut(l, "=")
			limits[name] = true
		}
	}
	t := terminal.NewTable(head...)
	row := func(name string, of func(*deviceKind) any) {
		cells := []any{name}
		for _, k := range list {
			cells = append(cells, of(k))
		}
		t.Add(cells...)
	}
	row("devices", func(k *deviceKind) any { return k.count })
	row("ports", func(k *deviceKind) any { return k.info.NumPorts })
	row("VendorID", func(k *deviceKind) any { return vendor(&k.info) })
	row("DeviceID", func(k *deviceKind) any { return device(&k.info) })
	row("Revision", func(k *deviceKind) any { return revision(&k.info) })
	for _, name := range namesIn(attributes) {
		row(name, func(k *deviceKind) any { return k.answer(name) })
	}
	for _, name := range namesIn(forgets) {
		row(name, func(k *deviceKind) any {
			if k.forgets[name] {
				return "not kept"
			}
			return nil
		})
	}
	for _, name := range namesIn(limits) {
		row(name, func(k *deviceKind) any { return k.limit(name) })
	}
	return t
}

// answer says whether devices of a kind answer an attribute; nil where none was asked.
func (k *deviceKind) answer(attribute string) any {
	switch {
	case k.answered[attribute] && k.missing[attribute]:
		return "not by all"
	case k.answered[attribute]:
		return "yes"
	case k.missing[attribute]:
		return "no"
	}
	return nil
}

// limit has the values of a limit, ascending as text.
func (k *deviceKind) limit(name string) []string {
	var values []string
	for _, l := range namesIn(k.limits) {
		if v, is := strings.CutPrefix(l, name+"="); is {
			values = append(values, v)
		}
	}
	return values
}

func namesIn(set map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}

// add enters what one device answered. Of a port whose agent did not answer at all nothing is
// missing: it may want a key.
func (k *deviceKind) add(n *observed.Node, scope observed.Scope) {
	k.count++
	read := map[observed.Block]bool{}
	n.Answers(func(b observed.Block, _ smp.Attribute, now bool) {
		if now {
			read[b] = true
			k.answered[smp.AttributeName(b.Attribute)] = true
		}
	})
	n.Tables(scope, func(b observed.Block) {
		if a := b.Port.Agent(); a.InfoRead && !read[b] {
			k.missing[smp.AttributeName(b.Attribute)] = true
		}
	})
	limit := func(name string, v any) { k.limits[fmt.Sprintf("%s=%v", name, v)] = true }
	limit("PartitionCap", n.Info.PartitionCap)
	if n.Switch != nil && n.Switch.InfoRead {
		i := &n.Switch.Info
		limit("PartitionEnforcementCap", i.PartitionEnforcementCap)
		limit("InboundEnforcementCap", i.InboundEnforcementCap)
		limit("OutboundEnforcementCap", i.OutboundEnforcementCap)
		limit("FilterRawInboundCap", i.FilterRawInboundCap)
		limit("FilterRawOutboundCap", i.FilterRawOutboundCap)
		limit("LinearFDBCap", i.LinearFDBCap)
		limit("MulticastFDBCap", i.MulticastFDBCap)
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		for _, name := range p.Forgets.Names() {
			k.forgets[name] = true
		}
		if p.RefusesExtendedSpeeds {
			k.missing["PortInfo with the bit of extended speeds"] = true
		}
		if p.InfoRead && p.Num > 0 {
			limit("VLCap", p.Info.VLCap)
			limit("MTUCap", p.Info.MTUCap)
			if p.IsEnd() {
				limit("GUIDCap", p.Info.GUIDCap)
			}
		}
	}
}
