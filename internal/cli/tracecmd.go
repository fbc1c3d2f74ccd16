package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/beside"
	"github.com/ibwarden/ibwarden/internal/cli/table"
	"github.com/ibwarden/ibwarden/internal/daemon"
	"github.com/ibwarden/ibwarden/internal/reach"
	"github.com/ibwarden/ibwarden/internal/subnet"
	"github.com/ibwarden/ibwarden/internal/sweep"
)

// traceFlags are the flags of `ibwarden trace`.
type traceFlags struct {
	source        source
	pkey, service string
	qkey          string
	sl            uint8
	json, send    bool

	packet   reach.Packet
	anyPKey  bool
	from, to string
}

// traceReport is what `ibwarden trace --json` prints.
type traceReport struct {
	reach.Trace
	FromName string       `json:"from_name"`
	ToName   string       `json:"to_name"`
	Source   string       `json:"source"`
	ReadAt   string       `json:"read_at"`
	Faults   []faultEntry `json:"faults"`
	SMPs     *daemon.SMPs `json:"smps"`
	// Packet is what became of a real one; null without --packet.
	Packet *beside.Report `json:"packet"`
}

func newTrace() *cobra.Command {
	var f traceFlags
	c := &cobra.Command{
		Use:   "trace FROM TO",
		Short: "Follow one packet by the tables that devices hold",
		Long: `Follow one packet by the tables that devices hold: each port on its way, the
lane, the checks made, the entry that decided, and what becomes of it. Only
SubnGet is sent.

FROM and TO are end ports: a port GUID, a LID, a node description, or
DESCRIPTION:PORT. Without --pkey the packet has the first key of FROM that TO
takes, or else the first that FROM has.

With --packet a simulated fabric is made of what was read, the packet is really
sent through it, and what becomes of it is held beside the trace, hop by hop.

` + fabricHelp,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			f.from, f.to = args[0], args[1]
			return f.run(c)
		},
	}
	f.source.add(c)
	flags := c.Flags()
	flags.StringVar(&f.pkey, "pkey", "", "P_Key of the packet, 16 bits; 0x8000 is the membership bit")
	flags.StringVar(&f.service, "service", "UD", "UD, RC, UC, RD or raw")
	flags.Uint8Var(&f.sl, "sl", 0, "service level, 0 to 15")
	flags.StringVar(&f.qkey, "qkey", "", "Q_Key of the packet, 32 bits; UD and RD only")
	flags.BoolVar(&f.send, "packet", false, "send the packet through a simulated fabric made of what was read, and compare")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

func (f *traceFlags) load() (err error) {
	if f.packet.Service, err = reach.ParseService(f.service); err != nil {
		return misuse(fmt.Errorf("--service: %w", err))
	}
	if f.sl >= smp.SLCount {
		return misuse(fmt.Errorf("--sl %d: want 0 to %d", f.sl, smp.SLCount-1))
	}
	f.packet.SL = ib.SL(f.sl)
	f.anyPKey = f.pkey == "" && f.packet.Service != reach.Raw
	if f.pkey != "" {
		k, err := strconv.ParseUint(f.pkey, 0, 16)
		switch {
		case f.packet.Service == reach.Raw:
			return misuse(errors.New("--pkey: a raw packet has none"))
		case err != nil || !ib.PKey(k).IsValid():
			return misuse(fmt.Errorf("--pkey %q: want 16 bits, the low 15 of them not all zero", f.pkey))
		}
		f.packet.PKey = ib.PKey(k)
	}
	if f.qkey != "" {
		q, err := strconv.ParseUint(f.qkey, 0, 32)
		switch {
		case f.packet.Service != reach.UD && f.packet.Service != reach.RD:
			return misuse(fmt.Errorf("--qkey: a packet of service %s has none", f.packet.Service))
		case err != nil:
			return misuse(fmt.Errorf("--qkey %q: want 32 bits", f.qkey))
		}
		key := ib.QKey(q)
		f.packet.QKey = &key
	}
	return nil
}

// What ends a trace of a packet that does not get through, and one of which a
// packet does not go the way that was computed.
var (
	errNotDelivered = errors.New("the packet is not delivered")
	errOtherwise    = errors.New("the packet that was sent does not agree with the trace")
)

func (f *traceFlags) run(c *cobra.Command) error {
	if err := f.load(); err != nil {
		return err
	}
	r, err := f.source.read(c, sweep.Options{Forwarding: true, QoS: true})
	if err != nil {
		return err
	}
	from, err := findEnd(r.Fabric, f.from)
	if err != nil {
		return misuse(fmt.Errorf("FROM: %w", err))
	}
	to, err := findEnd(r.Fabric, f.to)
	if err != nil {
		return misuse(fmt.Errorf("TO: %w", err))
	}
	if from == to {
		return misuse(fmt.Errorf("FROM and TO are both %s: want two ports", from))
	}
	if f.anyPKey {
		f.packet.PKey = usualKey(from, to)
	}
	t := reach.Follow(from, to, f.packet)
	var sent *beside.Report
	if f.send {
		if sent, err = beside.Try(r.Fabric, from, to, f.packet, &t); err != nil {
			return bad(err)
		}
	}
	if f.json {
		d := traceReport{Trace: t, FromName: from.String(), ToName: to.String(), Source: r.Source,
			ReadAt: r.readAt(), Faults: faultsOf(r), SMPs: r.smps, Packet: sent}
		if err := table.JSON(c.OutOrStdout(), d); err != nil {
			return bad(err)
		}
	} else if err := printTrace(c, t, from, to, sent); err != nil {
		return bad(err)
	}
	if sent != nil && !sent.Agrees {
		return bad(errOtherwise)
	}
	if t.Disposition != reach.Delivered {
		return bad(errNotDelivered)
	}
	return nil
}

// usualKey is the first key of a table that another takes, or its first key.
func usualKey(from, to *subnet.Port) ib.PKey {
	first := ib.PKeyDefaultFull
	for _, k := range slices.Backward(from.PKeys) {
		if k.IsValid() {
			first = k
		}
	}
	for _, k := range from.PKeys {
		if slices.ContainsFunc(to.PKeys, k.Matches) {
			return k
		}
	}
	return first
}

// findEnd finds the end port that a person means.
func findEnd(f *subnet.Fabric, name string) (*subnet.Port, error) {
	var found []*subnet.Port
	ports := f.EndPorts()
	guid, guidErr := ib.ParsePortGUID(name)
	lid, lidErr := ib.ParseLID(name)
	for _, p := range ports {
		described := p.Node.Description != "" && (p.Node.Description == name || p.Node.Description+":"+strconv.Itoa(int(p.Num)) == name ||
			firstWord(p.Node.Description) == name)
		if guidErr == nil && p.GUID == guid || lidErr == nil && p.InfoRead && p.Info.LID.IsUnicast() && p.Info.LID == lid || described {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("%q is no end port that was reached: want a port GUID, a LID, a node description, or DESCRIPTION:PORT", name)
	}
	names := make([]string, 0, len(found))
	for _, p := range found {
		names = append(names, fmt.Sprintf("%s (%s)", p, p.GUID))
	}
	slices.SortFunc(names, cmp.Compare)
	return nil, fmt.Errorf("%q may be any of %s: want one", name, strings.Join(names, ", "))
}

// firstWord is the part of a description by which people know a host: "red-1"
// of "red-1 HCA-1".
func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

func printTrace(c *cobra.Command, t reach.Trace, from, to *subnet.Port, sent *beside.Report) error {
	out := c.OutOrStdout()
	key := "no P_Key"
	if t.PKey != nil {
		key = "P_Key " + t.PKey.String()
	}
	fmt.Fprintf(out, "%s to %s (LID %s), %s, SL %d, %s\n\n", table.Plain(from), table.Plain(to), t.DLID, t.Service, t.SL, key)
	rows := table.New("node", "in", "out", "vl", "port", "check", "result", "entry")
	for _, h := range t.Hops {
		var vl any
		if h.VL != nil {
			vl = *h.VL
		}
		node, in, leaves := any(h.Name), any(h.In), any(h.Out)
		for i, check := range h.Checks {
			if i > 0 {
				node, in, leaves, vl = " ", " ", " ", " "
			}
			rows.Add(node, in, leaves, vl, check.Port, check.Rule, check.Result, check.Entry)
		}
	}
	if err := rows.Print(out, "", false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\ndisposition: %s\n  %s\n", t.Disposition, table.Plain(t.Reason))
	if sent != nil {
		printPacket(out, sent)
	}
	return err
}

// printPacket says what became of the packet that was sent.
func printPacket(out io.Writer, sent *beside.Report) {
	fmt.Fprintf(out, "the packet: %s, %s, after %d hops", sent.Disposition, sent.Reason, len(sent.Hops))
	if sent.Agrees {
		fmt.Fprintln(out, ", as computed")
	} else {
		fmt.Fprintln(out, ", NOT as computed:")
	}
	for _, d := range sent.Differences {
		fmt.Fprintf(out, "  %s\n", table.Plain(d))
	}
	for i, g := range sent.Gaps {
		if i == remarksMax {
			fmt.Fprintln(out, "  and more (--json lists them)")
			return
		}
		fmt.Fprintf(out, "  not made as it was read: port %d of node %s: %s\n", g.Port, g.Node, table.Plain(g.Why))
	}
}
