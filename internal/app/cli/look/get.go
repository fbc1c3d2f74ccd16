// get*.go: implements `ibwarden device get`, which prints one attribute of a device field by field,
// and `ibwarden device set`, which sets counters back to zero.

package look

import (
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// GetSource is how the command comes to a device.
type GetSource struct {
	// Add adds the flags that say where it is.
	Add func(*cobra.Command)
	// Open opens a fabric, or reads a file or asks a service, with what options ask for, and then
	// the link is nil.
	Open func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, link.Link, sweep.Options, error)
	// Help lists what a fabric may be.
	Help string
}

// GetCommand is `ibwarden device get`.
func GetCommand(source GetSource) *cobra.Command {
	var asJSON, raw bool
	c := &cobra.Command{
		Use:   "get DEVICE[:PORT] ATTRIBUTE [BLOCK [POSITION]]",
		Short: "Print an attribute of a device: each field, its value and what it means",
		Long: `Print an attribute of a device: each field by its name, its value on the wire, and
what that means. The device is asked (SubnGet, or PerformanceGet), with the keys in
the data directory; nothing is written. With --snapshot, or by a service, it is what
was read earlier.

DEVICE is a node description or its first word, a node GUID, a port GUID or a LID;
without :PORT it is the only port of a host, or port 0 of a switch. ATTRIBUTE is one
of subnet management: Notice, NodeDescription, NodeInfo, SwitchInfo, GUIDInfo,
PortInfo, PKeyTable, SLToVLMappingTable, VLArbitrationTable, LinearForwardingTable,
RandomForwardingTable, MulticastForwardingTable, SMInfo, VendorDiag, LEDInfo,
PortInfoExtended; one of performance management: PortCounters,
PortCountersExtended, PortRcvErrorDetails, PortXmitDiscardDetails, ClassPortInfo; or
a number such as 0xFF00. Underscores and the case of letters do not count.

Of a table every block in use is read, or the one that BLOCK names: its number, the
part (VLArbitrationTable 1 to 4: low, low, high, high), the input port
(SLToVLMappingTable; PORT is the output port), or block and position
(MulticastForwardingTable). ATTRIBUTE[BLOCK] is the same.

An M_Key and an SM_Key are not shown, and are zero in --raw.

` + source.Help,
		Args: cobra.RangeArgs(2, 4),
		RunE: func(c *cobra.Command, args []string) error {
			k, part, err := attributeOf(args[1:])
			if err != nil {
				return terminal.WithMisuse(err)
			}
			r, err := read(c, source, args[0], k, part)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.OrBad(terminal.JSON(c.OutOrStdout(), document(&r, raw)))
			}
			return terminal.OrBad(getShow(c.OutOrStdout(), &r, raw))
		},
	}
	source.Add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes instead of fields")
	return c
}

// bracketed is ATTRIBUTE[BLOCK] or ATTRIBUTE[BLOCK,POSITION].
var bracketed = regexp.MustCompile(`^([^\[\]]+)\[([^\[\],]+)(?:,([^\[\],]+))?\]$`)

// attributeOf reads ATTRIBUTE and what follows it.
func attributeOf(args []string) (k AttributeKind, part AttributePart, err error) {
	if m := bracketed.FindStringSubmatch(args[0]); m != nil {
		if len(args) > 1 {
			return k, part, fmt.Errorf("%q and %q: want one block", args[0], args[1])
		}
		args = []string{m[1], m[2]}
		if m[3] != "" {
			args = append(args, m[3])
		}
	}
	if k, err = FindAttribute(args[0]); err != nil || len(args) == 1 {
		return k, part, err
	}
	n, err := strconv.ParseUint(args[1], 0, 16)
	if err != nil {
		return k, part, fmt.Errorf("block %q: want a number from 0 to 65535", args[1])
	}
	part = AttributePart{N: uint16(n), Some: true}
	if len(args) == 3 {
		if k.Layout.Modifier != smp.ModifierBlockPosition {
			return k, part, fmt.Errorf("%s has no positions in its blocks: %q is too many", k.Name, args[2])
		}
		n, err := strconv.ParseUint(args[2], 0, 8)
		if err != nil || n >= smp.MulticastPosition {
			return k, part, fmt.Errorf("position %q: want a number from 0 to %d", args[2], smp.MulticastPosition-1)
		}
		part.Second = uint8(n)
	}
	return k, part, nil
}

// read finds the device and reads the attribute.
func read(c *cobra.Command, source GetSource, device string, k AttributeKind, part AttributePart) (r AttributeResult, err error) {
	snap, to, reads, err := source.Open(c, needed(k))
	if err != nil {
		return r, err
	}
	if to == nil {
		t, err := located(snap.Fabric, device, len(snap.Faults))
		if err != nil {
			return r, err
		}
		r, err := HeldAttribute(snap.Fabric, t, k, part)
		return r, terminal.OrBad(err)
	}
	defer to.Close()
	found, err := Live(c, to, reads)
	if err != nil {
		return r, err
	}
	t, err := located(found.Fabric, device, len(found.Faults))
	if err != nil {
		return r, err
	}
	r, err = ReadAttribute(c.Context(), to, found.Fabric, t, k, part)
	return r, terminal.OrBad(err)
}

// located finds the device. One that is not there may be among what could not be read.
func located(f *observed.Fabric, device string, faults int) (AttributeTarget, error) {
	t, err := Locate(f, device)
	switch {
	case err == nil:
		return t, nil
	case faults > 0:
		return t, terminal.WithBad(fmt.Errorf("%w; %s could not be read", err, terminal.Count(faults, "place")))
	}
	return t, terminal.WithMisuse(err)
}

// needed is what a service has to read for an attribute.
func needed(k AttributeKind) (o sweep.Options) {
	switch k.ID {
	case smp.AttrSLToVLMappingTable, smp.AttrVLArbitrationTable:
		o.QoS = true
	case smp.AttrGUIDInfo, smp.AttrSMInfo, smp.AttrPKeyTable:
		o.Audit = true
	}
	return o
}

// getShow prints what was read for people.
func getShow(w io.Writer, r *AttributeResult, raw bool) error {
	if _, err := fmt.Fprintf(w, "%s of %s (%s)\n", r.Kind.Name, terminal.Plain(r.Port), terminal.Plain(r.Port.Node.GUID())); err != nil {
		return err
	}
	t := terminal.NewTable("field", "value", "meaning")
	for i, a := range r.Answers {
		where := r.Kind.Where(r.Port, a.Modifier)
		if where != "" {
			if _, err := fmt.Fprintf(w, "%s:\n", where); err != nil {
				return err
			}
		}
		if a.Old {
			fmt.Fprintf(w, "not read the last time: what follows is older (modifier 0x%08x)\n", a.Modifier)
		}
		if raw {
			if err := dump(w, a); err != nil {
				return err
			}
			continue
		}
		for _, f := range a.Fields {
			t.Add(f.Name, f.Value, f.Meaning)
		}
		if where != "" || i == len(r.Answers)-1 {
			if err := t.Print(w, "fields", false); err != nil {
				return err
			}
			t = terminal.NewTable("field", "value", "meaning")
		}
	}
	return nil
}

// dump prints bytes: the modifier, where they are, and 16 of them in a line.
func dump(w io.Writer, a AttributeAnswer) error {
	const line = 16
	for at := 0; at < len(a.Data); at += line {
		if _, err := fmt.Fprintf(w, "0x%08x  %02x  % x\n", a.Modifier, at, a.Data[at:min(at+line, len(a.Data))]); err != nil {
			return err
		}
	}
	return nil
}

// Document is what --json prints.
type Document struct {
	Attribute string  `json:"attribute"`
	Node      string  `json:"node"`
	NodeGUID  string  `json:"node_guid"`
	Port      int     `json:"port"`
	Blocks    []block `json:"blocks"`
}

type block struct {
	Modifier string  `json:"modifier"`
	Old      bool    `json:"old"`
	Raw      string  `json:"raw,omitempty"`
	Fields   []field `json:"fields,omitempty"`
}

type field struct {
	Name    string `json:"name"`
	Value   any    `json:"value"`
	Meaning string `json:"meaning"`
}

func document(r *AttributeResult, raw bool) Document {
	d := Document{Attribute: r.Kind.Name, Node: r.Port.Node.Name(), NodeGUID: r.Port.Node.GUID().String(), Port: int(r.Port.Num), Blocks: []block{}}
	for _, a := range r.Answers {
		b := block{Modifier: fmt.Sprintf("0x%08x", a.Modifier), Old: a.Old}
		if raw {
			b.Raw = hex.EncodeToString(a.Data)
		} else {
			for _, f := range a.Fields {
				b.Fields = append(b.Fields, field(f))
			}
		}
		d.Blocks = append(d.Blocks, b)
	}
	return d
}
