package observed

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/ibwarden/ibwarden/ib"
)

// WriteLFTs writes the forwarding tables of a snapshot, switches by GUID, entries by LID. LIDs
// that belong to no end port of it are left out, as are switches whose tables were not read;
// it says how many of these there are.
func WriteLFTs(to io.Writer, f *Fabric) (unread int, err error) {
	owners := make(map[ib.LID]*Port)
	for _, p := range f.EndPorts() {
		if !p.InfoRead || !p.Info.LID.IsUnicast() {
			continue
		}
		for i := range p.Info.LMC.Count() {
			if lid := p.Info.LID + ib.LID(i); lid.IsUnicast() && owners[lid] == nil {
				owners[lid] = p
			}
		}
	}
	lids := make([]ib.LID, 0, len(owners))
	for lid := range owners {
		lids = append(lids, lid)
	}
	slices.Sort(lids)
	top := ib.LID(0)
	if len(lids) > 0 {
		top = lids[len(lids)-1]
	}
	switches := f.Switches()
	slices.SortFunc(switches, func(a, b *Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	out := bufio.NewWriter(to)
	for _, s := range switches {
		if !s.Switch.InfoRead {
			unread++
			continue
		}
		fmt.Fprintf(out, "Unicast lids [0x0-0x%x] of switch Lid %d guid 0x%016x ('%s'):\n",
			uint16(top), s.Ports[0].Info.LID, uint64(s.GUID()), plain(s.Description))
		count, holes := 0, false
		for _, lid := range lids {
			port, read := s.Switch.Exit(lid, AnyPort)
			if holes = holes || !read; !read || port == ib.PortNone {
				continue
			}
			count++
			p := owners[lid]
			fmt.Fprintf(out, "0x%04x %03d # %s portguid 0x%016x: '%s'\n", uint16(lid), port, kind(p.Node), uint64(p.GUID), plain(p.Node.Description))
		}
		if holes {
			unread++
		}
		fmt.Fprintf(out, "%d lids dumped\n", count)
	}
	return unread, out.Flush()
}

func kind(n *Node) string {
	switch n.Type() {
	case ib.NodeSwitch:
		return "Switch"
	case ib.NodeRouter:
		return "Router"
	}
	return "Channel Adapter"
}

// plain is a name that a device gives itself, without what would end its line, or look like
// something else to a reader.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '\'' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, name)
}
